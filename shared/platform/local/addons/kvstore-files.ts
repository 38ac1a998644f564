import { chown, mkdir, open, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ifMissing } from '#shared/files/if-missing.ts';
import { limitFileSize } from '#shared/files/limit-file-size.ts';
import { replaceFile } from '#shared/files/replace-file.ts';
import type { SandboxRecord } from '#shared/platform/local/sandbox/sandbox-process.ts';
import { adminSocketName, dumpName } from './kvstore-plan.ts';

/** A key-value server as it is recorded on disk, so that a control plane started later finds it again. */
export interface KvstoreRecord {
  /** `kvstore-{tenant_id}-{app_id}.{index}` */
  id: string;
  /** From 1. The store's address is that of server 1. */
  index: number;
  port: number;
  uid: number;
  memoryBytes: number;
  connections: number;
  passwordHash: string;
  /** Password of the platform's own user, `adminUser`. */
  adminPassword: string;
  /** It is not to run. Its data stays. */
  stopped: boolean;
  /** Undefined while it does not run, and between "about to be started" and "started". */
  program?: SandboxRecord | undefined;
}

/** The files of one key-value server, in `addons/kvstore/<app_id>/<index>/`. */
export class KvstoreFiles {
  readonly directory: string;

  constructor(directory: string) {
    this.directory = directory;
  }

  get configFile(): string {
    return join(this.directory, 'server.conf');
  }

  get dataDir(): string {
    return join(this.directory, 'data');
  }

  /** Absolute path of the socket that the platform administers the server on. */
  get adminSocket(): string {
    return join(this.dataDir, adminSocketName);
  }

  /** Undefined when there is no record. */
  async read(): Promise<KvstoreRecord | undefined> {
    const text = await readFile(this.#recordFile, 'utf8').catch(ifMissing(undefined));
    return text === undefined ? undefined : (JSON.parse(text) as KvstoreRecord);
  }

  async save(record: KvstoreRecord): Promise<void> {
    await mkdir(this.directory, { recursive: true, mode: 0o700 });
    await replaceFile(this.#recordFile, JSON.stringify(record), 0o600);
  }

  /** Writes the configuration and creates the data directory, both for the server's own user. */
  async prepare(config: string, uid: number): Promise<void> {
    await mkdir(this.dataDir, { recursive: true, mode: 0o700 });
    await replaceFile(this.configFile, config, 0o600);
    if (process.getuid?.() !== 0) return;
    await Promise.all([this.dataDir, this.configFile].map((path) => chown(path, uid, uid)));
  }

  /** To be called once it is loaded: after a crash an empty store is better than old data. */
  removeDump(): Promise<void> {
    return rm(join(this.dataDir, dumpName), { force: true });
  }

  async openLog(): ReturnType<typeof open> {
    await this.limitLog();
    return open(this.#logFile, 'a', 0o600);
  }

  /** Clients can have the server log as much as they like. */
  limitLog(): Promise<void> {
    return limitFileSize(this.#logFile, longestLogBytes);
  }

  remove(): Promise<void> {
    return rm(this.directory, { recursive: true, force: true });
  }

  get #logFile(): string {
    return join(this.directory, 'server.log');
  }

  get #recordFile(): string {
    return join(this.directory, 'server.json');
  }
}

const longestLogBytes = 1024 * 1024;

/** The servers of one app, by index. */
export async function listKvstoreFiles(appDirectory: string): Promise<{ index: number; files: KvstoreFiles }[]> {
  const names = await readdir(appDirectory).catch(ifMissing([]));
  return names
    .filter((name) => /^[1-9]\d?$/.test(name))
    .map((name) => ({ index: Number(name), files: new KvstoreFiles(join(appDirectory, name)) }))
    .sort((one, other) => one.index - other.index);
}
