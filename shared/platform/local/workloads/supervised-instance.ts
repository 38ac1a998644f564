import type { Clock } from '#shared/clock.ts';
import { AppError } from '#shared/errors.ts';
import type { AppId } from '#shared/ids.ts';
import type { Log } from '#shared/log.ts';
import type { InstanceFacts, WorkloadSpec } from '#shared/platform/workloads.ts';
import type { AppLogCollector } from '../logs/app-log-collector.ts';
import type { InstanceNetwork } from '../network/instance-networks.ts';
import { endUnrecorded } from '../processes/end-unrecorded.ts';
import { instanceName } from '../processes/instance-key.ts';
import type { PortPool } from '../processes/port-pool.ts';
import { planRestartDelay } from '../processes/restart-delay.ts';
import type { SandboxRecord } from '../sandbox/sandbox-process.ts';
import { type BootingInstance, becomeHealthy, readInstanceListeners, watchPort } from './instance-boot.ts';
import type { InstanceRecord, InstanceStore } from './instance-store.ts';
import { describeEnd, type ProgramEnd, type Programs } from './programs.ts';
import { describeMissedBoot, planEnvironment } from './supervision.ts';

/** What the instances of an app share. */
export interface InstanceDependencies {
  appId: AppId;
  programs: Programs;
  ports: PortPool;
  store: InstanceStore;
  output: AppLogCollector;
  clock: Clock;
  log: Log;
  /** Of the machine's present run. */
  bootId: string;
  timings: InstanceTimings;
}

/** How long an instance may take, and how often it is checked. */
export interface InstanceTimings {
  bootSeconds: number;
  /** How long an instance may listen on a wrong port before it counts as not coming up. */
  wrongPortSeconds: number;
  stopSeconds: number;
  /** A process type without a port counts as up after this time. */
  settleMilliseconds: number;
  healthPollMilliseconds: number;
  /** How often it is checked that a process that is not our child still runs. */
  alivePollMilliseconds: number;
  /** After a run of this length the delay before the next restart is the shortest again. */
  stableSeconds: number;
  memoryBytes: number;
}

/** Whether an instance came up, and if not why: 'exited with code 1'. */
export type BootResult = { up: true } | { up: false; cause: string };

/**
 * One instance, from its first start until it is stopped. It starts the process, or takes over one that an earlier control
 * plane started, waits until that is ready for traffic, and starts it again with a growing delay when it crashes.
 */
export class SupervisedInstance {
  readonly #deps: InstanceDependencies;
  readonly #spec: WorkloadSpec | undefined;
  readonly #changed: (instance: SupervisedInstance) => void;
  #record: InstanceRecord;
  /** True when an earlier control plane started it. */
  readonly #found: boolean;
  /** Aborted when the process is not to be started any more. */
  readonly #ending = new AbortController();
  #launching: Promise<void> = Promise.resolve();
  #life: Promise<void> | undefined;
  #ended: Promise<ProgramEnd> | undefined;
  #saving: Promise<void> = Promise.resolve();
  #exposedPorts: readonly number[] = [];
  #detached = false;
  #crashesInARow = 0;
  #lastCause = '';
  readonly #firstBoot = Promise.withResolvers<BootResult>();

  /** @param spec undefined for an instance of a release that is not stored any more: it can only be stopped */
  constructor(
    deps: InstanceDependencies,
    spec: WorkloadSpec | undefined,
    record: InstanceRecord,
    found: boolean,
    changed: (instance: SupervisedInstance) => void,
  ) {
    this.#deps = deps;
    this.#spec = spec;
    this.#record = record;
    this.#changed = changed;
    this.#found = found;
  }

  get record(): Readonly<InstanceRecord> {
    return this.#record;
  }

  get name(): string {
    return instanceName(this.#record);
  }

  /** What the port Workloads reports of it. */
  get facts(): InstanceFacts {
    const { type, state, releaseVersion, startedAt, restarts } = this.#record;
    return {
      name: this.name,
      type,
      state: state === 'new' ? 'starting' : state,
      releaseVersion,
      startedAt: new Date(startedAt),
      restarts,
    };
  }

  /** Whether it has ended by itself and is not up again yet. */
  get isRecovering(): boolean {
    return this.#record.state === 'crashed' || (this.#record.state !== 'up' && this.#lastCause !== '');
  }

  /** Why it crashed last; '' when it never did. */
  get lastCause(): string {
    return this.#lastCause;
  }

  /** How the first start went, or the first after it was taken over. */
  get firstBoot(): Promise<BootResult> {
    return this.#firstBoot.promise;
  }

  /** Starts a new instance, or takes over one that an earlier control plane started. */
  begin(): void {
    this.#life ??= this.#live().catch((error: unknown) => {
      this.#deps.log.error('an instance is no longer supervised', { instance: this.#record.key, error });
      this.#firstBoot.resolve({ up: false, cause: 'could not be supervised' });
    });
  }

  /** From now on it counts as stopping and is not started again. */
  async markStopping(): Promise<void> {
    this.#ending.abort();
    await this.#launching;
    if (this.#record.state === 'stopping') return;
    await this.#update({ state: 'stopping' });
  }

  /** Ends all its processes, by SIGTERM first, and deletes its record. */
  async stop(): Promise<void> {
    await this.markStopping();
    this.#deps.output.adoptOutput(this.#record.key);
    const { program } = this.#record;
    const wasAlive = program !== undefined && (await this.#deps.programs.isAlive(program));
    if (program !== undefined) await this.#endProgram(program);
    await this.#life;
    if (wasAlive) await this.#logLine(`Stopped ${this.name}`);
    await this.#deps.output.closeOutput(this.#record.key);
    await this.#saving;
    const { appId, store, ports, programs } = this.#deps;
    await store.remove(this.#record.key);
    ports.release(this.#record.port);
    if (this.#record.network !== undefined) await programs.networks?.free(appId, this.#record.network);
  }

  /** Ends the supervision and leaves the process running. */
  async detach(): Promise<void> {
    this.#detached = true;
    this.#ending.abort();
    await this.#life;
  }

  async #live(): Promise<void> {
    let adopted = await this.#findAgain();
    while (!this.#ending.signal.aborted) {
      const begun = this.#deps.clock.now().getTime();
      const cause = await this.#oneRun(adopted);
      adopted = false;
      if (this.#ending.signal.aborted || cause === undefined) return;
      const stable = this.#deps.clock.now().getTime() - begun >= this.#deps.timings.stableSeconds * 1000;
      await this.#waitToRestart(cause, stable);
    }
  }

  /** @returns whether the program that an earlier control plane started still runs */
  async #findAgain(): Promise<boolean> {
    const { programs, output, bootId } = this.#deps;
    const { program, state, key } = this.#record;
    if (program === undefined) {
      if (state === 'new' && this.#found) await endUnrecorded('PAAS_INSTANCE', key);
      return false;
    }
    output.adoptOutput(key);
    if (await programs.isAlive(program)) return true;
    await programs.end(program);
    // It has crashed meanwhile, unless the machine was restarted.
    const crashed = program.init.bootId === bootId;
    await this.#update({ program: undefined, restarts: this.#record.restarts + (crashed ? 1 : 0) });
    if (crashed) await this.#logLine(`${this.name} ended while the platform was away, restarting`);
    return false;
  }

  /** Resolves when the process has ended, with why; with undefined after `detach`. */
  async #oneRun(adopted: boolean): Promise<string | undefined> {
    try {
      if (adopted) this.#watchAdopted();
      else await this.#launch();
    } catch (error) {
      if (!(error instanceof AppError))
        this.#deps.log.error('an instance could not be started', { instance: this.#record.key, error });
      return `could not be started: ${error instanceof AppError ? error.message : 'the platform failed'}`;
    }
    const ended = this.#ended;
    const { program } = this.#record;
    if (ended === undefined || program === undefined) return undefined;
    const missedBoot = await this.#awaitBoot(ended, program, adopted);
    if (missedBoot !== undefined) {
      if (this.#ending.signal.aborted) return undefined;
      await this.#logLine(`${this.name} ${missedBoot}`);
      await this.#endProgram(program);
    }
    const end = await this.#unlessDetached(ended);
    if (end === undefined) return undefined;
    await this.#deps.programs.end(program);
    if (missedBoot !== undefined) return missedBoot;
    const before = this.#record.state === 'up' || this.#record.port === 0 ? '' : ' before it listened on PORT';
    return `${describeEnd(end, this.#deps.timings.memoryBytes)}${before}`;
  }

  async #launch(): Promise<void> {
    const launched = Promise.withResolvers<void>();
    this.#launching = launched.promise;
    try {
      const { programs, output, clock } = this.#deps;
      const spec = this.#spec;
      const process = spec?.processes.find(({ type }) => type === this.#record.type);
      if (spec === undefined || process === undefined)
        throw new AppError('internal', `The release has no process type "${this.#record.type}".`);
      const network = await this.#takePlace();
      // Stored before the process exists: if this process dies in between, the key in its environment identifies it.
      await this.#update({ state: 'new', program: undefined, startedAt: clock.now().toISOString() });
      await this.#logLine(`Starting ${this.name} with \`${process.command}\``);
      const files = await output.openOutput(this.#record.key);
      try {
        const program = await programs.start({
          id: this.#record.key,
          appId: spec.appId,
          tenantId: spec.tenantId,
          imageUrl: spec.imageUrl,
          command: process.command,
          env: planEnvironment(spec, this.#record),
          network: network?.namespace,
          output: { stdout: files.stdout, stderr: files.stderr },
          survivesControlPlane: true,
        });
        program.unref();
        this.#exposedPorts = program.exposedPorts;
        this.#ended = program.exited.then(async ({ code }) => ({
          code,
          outOfMemory: await programs.ranOutOfMemory(program.record),
        }));
        await this.#update({ state: 'starting', program: program.record, address: program.address });
      } finally {
        files.close();
      }
    } finally {
      launched.resolve();
    }
  }

  /** A network and a port of its own: those it has had, if possible. */
  async #takePlace(): Promise<InstanceNetwork | undefined> {
    const { appId, ports, programs } = this.#deps;
    const { type, port: portBefore, network: numberBefore } = this.#record;
    const before = numberBefore === undefined ? undefined : { number: numberBefore, port: portBefore };
    const network = await programs.networks?.take(appId, before);
    let port = 0;
    if (type === 'web') {
      if (portBefore !== 0) ports.release(portBefore);
      port = network?.port ?? (await ports.reserve(portBefore === 0 ? undefined : portBefore));
    }
    this.#record = { ...this.#record, network: network?.number, port, target: undefined };
    return network;
  }

  /** The system reports the end of child processes only, and this one is not: so it is checked. */
  #watchAdopted(): void {
    const { program } = this.#record;
    if (program === undefined) return;
    const { clock, timings, programs } = this.#deps;
    const look = async (): Promise<ProgramEnd> => {
      while (!this.#detached && (await programs.isAlive(program))) await clock.sleep(timings.alivePollMilliseconds);
      return { code: undefined, outOfMemory: await programs.ranOutOfMemory(program) };
    };
    this.#ended = look();
  }

  /** Resolves with why it did not come up; with undefined when it is up, has ended by itself or is being stopped. */
  async #awaitBoot(ended: Promise<ProgramEnd>, program: SandboxRecord, adopted: boolean): Promise<string | undefined> {
    if (this.#record.state === 'up') {
      this.#firstBoot.resolve({ up: true });
      this.#changed(this);
      return undefined;
    }
    const over = AbortSignal.any([this.#ending.signal, abortedAfter(ended)]);
    const bootSeconds = this.#spec?.bootTimeoutSeconds ?? this.#deps.timings.bootSeconds;
    const spent = adopted ? this.#deps.clock.now().getTime() - Date.parse(this.#record.startedAt) : 0;
    const deadline = AbortSignal.timeout(Math.max(0, bootSeconds * 1000 - spent));
    const settled = new AbortController();
    const booting = this.#booting(program);
    const wrongPort = watchPort(booting, AbortSignal.any([over, deadline, settled.signal]));
    const problem = await becomeHealthy(booting, AbortSignal.any([over, deadline, wrongPort]));
    settled.abort();
    if (over.aborted) return undefined;
    const { port, target } = this.#record;
    if (problem !== undefined) return describeMissedBoot(problem, port, bootSeconds, await readInstanceListeners(booting));
    if (target !== undefined)
      await this.#logLine(`${this.name} listens on ${target} instead of PORT (${port}); it is served there`);
    await this.#update({ state: 'up' });
    this.#changed(this);
    await this.#logLine(`${this.name} is up`);
    this.#firstBoot.resolve({ up: true });
    return undefined;
  }

  #booting(program: SandboxRecord): BootingInstance {
    const { appId, clock, timings, programs } = this.#deps;
    return {
      ...{ clock, timings, program, spec: this.#spec, exposedPorts: this.#exposedPorts },
      readRecord: () => this.#record,
      leadPort: async (target) => {
        const { network, port } = this.#record;
        if (network === undefined) return;
        // Stored first: a later control plane must know what it may have to undo.
        await this.#update({ target });
        await programs.networks?.leadPort(appId, { number: network, port }, target);
      },
    };
  }

  async #waitToRestart(cause: string, stable: boolean): Promise<void> {
    this.#crashesInARow = stable ? 1 : this.#crashesInARow + 1;
    this.#lastCause = cause;
    const delaySeconds = planRestartDelay(this.#crashesInARow);
    await this.#update({ state: 'crashed', program: undefined, restarts: this.#record.restarts + 1 });
    this.#changed(this);
    await this.#deps.output.flush(this.#record.key);
    await this.#logLine(`${this.name} ${cause}, restarting in ${delaySeconds} s`);
    this.#firstBoot.resolve({ up: false, cause });
    await this.#deps.clock.sleep(delaySeconds * 1000, this.#ending.signal).catch(() => undefined);
  }

  async #endProgram(program: SandboxRecord): Promise<void> {
    const { programs, timings, clock } = this.#deps;
    await programs.terminate(program);
    const patience = AbortSignal.timeout(timings.stopSeconds * 1000);
    while (!patience.aborted && (await programs.isAlive(program))) await clock.sleep(20);
    await programs.end(program);
  }

  /** Resolves as `ended` does, or with undefined at `detach`. */
  #unlessDetached(ended: Promise<ProgramEnd>): Promise<ProgramEnd | undefined> {
    return new Promise((resolve, reject) => {
      ended.then(resolve, reject);
      const leave = (): void => {
        if (this.#detached) resolve(undefined);
      };
      if (this.#ending.signal.aborted) leave();
      else this.#ending.signal.addEventListener('abort', leave, { once: true });
    });
  }

  async #update(change: Partial<InstanceRecord>): Promise<void> {
    // A process that is being stopped stays 'stopping', whatever is found out about it meanwhile.
    const state = this.#record.state === 'stopping' ? 'stopping' : (change.state ?? this.#record.state);
    this.#record = { ...this.#record, ...change, state };
    // One write at a time, each of the newest state: an older one must not be written last.
    this.#saving = this.#saving.then(() => this.#deps.store.save(this.#record));
    await this.#saving;
  }

  #logLine(message: string): Promise<void> {
    return this.#deps.output.appendPlatformLine(message, this.#record.releaseVersion);
  }
}

function abortedAfter(promise: Promise<unknown>): AbortSignal {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  promise.then(abort, abort);
  return controller.signal;
}
