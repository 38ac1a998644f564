import { access } from 'node:fs/promises';
import type { Clock } from '#shared/clock.ts';
import type { AppId } from '#shared/ids.ts';
import type { Log } from '#shared/log.ts';
import { endUnrecorded } from '#shared/platform/local/processes/end-unrecorded.ts';
import { planRestartDelay } from '#shared/platform/local/processes/restart-delay.ts';
import type { Sandbox } from '#shared/platform/local/sandbox/open-sandbox.ts';
import type { SandboxRecord } from '#shared/platform/local/sandbox/sandbox-process.ts';
import { askKvstore } from './ask-kvstore.ts';
import type { KvstoreFiles, KvstoreRecord } from './kvstore-files.ts';
import { addonVariable, adminUser, hashPassword, kvstoreConfig, kvstoreSandbox } from './kvstore-plan.ts';

export interface KvstoreDependencies {
  sandbox: Sandbox;
  /** @returns the absolute path of the server's program @throws AppError when there is none */
  findProgram(): Promise<string>;
  clock: Clock;
  log: Log;
}

export type KvstoreChange = Partial<Pick<KvstoreRecord, 'passwordHash' | 'memoryBytes' | 'connections' | 'stopped' | 'port'>>;

const alivePollMilliseconds = 250;
const readyPollMilliseconds = 25;
/** After so many looks at a server the length of its log is checked. */
const looksPerLogCheck = 20;
/** Saving a gigabyte takes less. */
const stopMilliseconds = 30_000;
/** After a run of this length the next crash counts as the first. */
const stableMilliseconds = 60_000;

/** One key-value server. It is started or found again, and started again whenever it ends by itself, until `stop` or `detach`. */
export class KvstoreServer {
  readonly #dependencies: KvstoreDependencies;
  readonly #appId: AppId;
  readonly #files: KvstoreFiles;
  #record: KvstoreRecord;
  #ending = new AbortController();
  #life: Promise<void> | undefined;
  #ready = false;

  /** @param appId whose network the server joins */
  constructor(dependencies: KvstoreDependencies, appId: AppId, files: KvstoreFiles, record: KvstoreRecord) {
    this.#dependencies = dependencies;
    this.#appId = appId;
    this.#files = files;
    this.#record = record;
  }

  get record(): Readonly<KvstoreRecord> {
    return this.#record;
  }

  /** Whether it answers with its data loaded. */
  get ready(): boolean {
    return this.#ready;
  }

  /** Starts the supervision, which starts the server. */
  begin(): void {
    if (this.#life !== undefined) return;
    this.#ending = new AbortController();
    this.#life = this.#live(this.#ending.signal).catch((error: unknown) => {
      this.#dependencies.log.error('a key-value server is no longer supervised', { server: this.#record.id, error });
    });
  }

  /** A new password takes effect at once when the server runs; every other change takes effect at its next start. */
  async change(change: KvstoreChange): Promise<void> {
    const rotates = change.passwordHash !== undefined && change.passwordHash !== this.#record.passwordHash;
    await this.#update(change);
    // A server that is starting gets it before it is ready.
    if (rotates && this.#ready) await this.#setPassword();
  }

  /** Ends it after it has saved its data. */
  async stop(): Promise<void> {
    await this.detach();
    const { program } = this.#record;
    if (program === undefined) return;
    await this.#end(program);
    await this.#update({ program: undefined });
  }

  /** Ends it at once and removes its files. */
  async destroy(): Promise<void> {
    await this.detach();
    if (this.#record.program !== undefined) await this.#dependencies.sandbox.end(this.#record.program);
    await this.#files.remove();
  }

  /** Ends the supervision, and leaves the server as it is. */
  async detach(): Promise<void> {
    this.#ending.abort();
    await this.#life;
    this.#life = undefined;
    this.#ready = false;
  }

  async #live(ending: AbortSignal): Promise<void> {
    const { clock, sandbox, log } = this.#dependencies;
    let crashesInARow = 0;
    while (!ending.aborted) {
      const begun = clock.now().getTime();
      try {
        const program = await this.#findOrLaunch();
        await this.#watch(program, ending);
        if (ending.aborted) return;
        await sandbox.end(program);
        await this.#update({ program: undefined });
        log.warn('a key-value server ended by itself', { server: this.#record.id });
      } catch (error) {
        log.warn('a key-value server could not be started', { server: this.#record.id, error });
      }
      crashesInARow = clock.now().getTime() - begun >= stableMilliseconds ? 1 : crashesInARow + 1;
      await clock.sleep(planRestartDelay(crashesInARow) * 1000, ending).catch(() => undefined);
    }
  }

  async #findOrLaunch(): Promise<SandboxRecord> {
    const { sandbox } = this.#dependencies;
    const { program } = this.#record;
    if (program !== undefined && (await sandbox.isAlive(program))) {
      if (await this.#hasAdminSocket()) return program;
      // An earlier version of the platform started it without one.
      await this.#end(program);
    }
    if (program !== undefined) await sandbox.end(program);
    // The platform may have died right after it started the server: two of them must not share a directory.
    await endUnrecorded(addonVariable, this.#record.id);
    return this.#launch();
  }

  /** Ends a server after it has saved its data. */
  async #end(program: SandboxRecord): Promise<void> {
    const { sandbox, clock } = this.#dependencies;
    await sandbox.signal(program, 'SIGTERM');
    const patience = AbortSignal.timeout(stopMilliseconds);
    while (!patience.aborted && (await sandbox.isAlive(program))) await clock.sleep(readyPollMilliseconds);
    await sandbox.end(program);
  }

  #hasAdminSocket(): Promise<boolean> {
    return access(this.#files.adminSocket).then(
      () => true,
      () => false,
    );
  }

  async #launch(): Promise<SandboxRecord> {
    const { sandbox, findProgram } = this.#dependencies;
    const { id, uid, memoryBytes, adminPassword } = this.#record;
    const network = await sandbox.ensureNetwork(this.#appId);
    const executable = await findProgram();
    await this.#files.prepare(kvstoreConfig({ ...this.#record, adminHash: hashPassword(adminPassword) }), uid);
    const { configFile, dataDir } = this.#files;
    const log = await this.#files.openLog();
    try {
      const output = { fd: log.fd };
      const spec = kvstoreSandbox({
        id,
        uid,
        program: executable,
        configFile,
        dataDir,
        memoryBytes,
        network: network?.namespace,
      });
      const server = await sandbox.spawn(spec, { stdout: output, stderr: output });
      server.unref();
      await this.#update({ program: server.record });
      return server.record;
    } finally {
      await log.close();
    }
  }

  /** Resolves when the server or the supervision has ended. */
  async #watch(program: SandboxRecord, ending: AbortSignal): Promise<void> {
    const { clock, sandbox } = this.#dependencies;
    for (let look = 1; !ending.aborted && (await sandbox.isAlive(program)); look += 1) {
      if (!this.#ready) await this.#becomeReady();
      if (look % looksPerLogCheck === 0) await this.#files.limitLog();
      await clock.sleep(this.#ready ? alivePollMilliseconds : readyPollMilliseconds, ending).catch(() => undefined);
    }
    this.#ready = false;
  }

  async #becomeReady(): Promise<void> {
    const { passwordHash } = this.#record;
    const answers = await this.#setPassword().then(
      () => true,
      () => false,
    );
    if (!answers || passwordHash !== this.#record.passwordHash) return;
    await this.#files.removeDump();
    this.#ready = true;
  }

  /** Sets the app's password. The server refuses it while it loads its data. */
  async #setPassword(): Promise<void> {
    const { adminPassword, passwordHash } = this.#record;
    await askKvstore(this.#files.adminSocket, [
      ['AUTH', adminUser, adminPassword],
      ['ACL', 'SETUSER', 'default', 'resetpass', `#${passwordHash}`],
      ['PING'],
    ]);
  }

  async #update(change: Partial<KvstoreRecord>): Promise<void> {
    this.#record = { ...this.#record, ...change };
    await this.#files.save(this.#record);
  }
}
