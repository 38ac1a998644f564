/** What is stored of each instance, so that a later control plane can take it over. */
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ifMissing } from '#shared/files/if-missing.ts';
import { replaceFile } from '#shared/files/replace-file.ts';
import type { AppId } from '#shared/ids.ts';
import { type InstanceIdentity, parseInstanceKey } from '../processes/instance-key.ts';
import type { SandboxRecord } from '../sandbox/sandbox-process.ts';

/** An instance as it is stored. */
export interface InstanceRecord extends InstanceIdentity {
  /** As `newInstanceKey` makes it. */
  key: string;
  /** 'new': it is about to be started. 'stopping': it gets no traffic any more, and is being ended. */
  state: 'new' | 'starting' | 'up' | 'crashed' | 'stopping';
  /** Undefined while it is 'new', and after a crash. */
  program?: SandboxRecord | undefined;
  /** That it listens on; 0 for types other than 'web'. */
  port: number;
  /** Number of its own network; undefined: it shares the app's. */
  network?: number | undefined;
  /** Port inside that `port` leads to, if the instance does not listen on that. */
  target?: number | undefined;
  /** IPv4 address of the app's network; undefined for the loopback of the host. */
  address?: string | undefined;
  /** Of the present process, in ISO 8601. */
  startedAt: string;
  /** How often it was started again after it had ended by itself. */
  restarts: number;
}

/** IPv4 address at which the host reaches an instance. */
export function addressOf({ address }: Pick<InstanceRecord, 'address'>): string {
  return address ?? '127.0.0.1';
}

/** The stored instances of one app. */
export interface InstanceStore {
  /** Not to be called for an instance while an earlier call for it runs. */
  save(record: InstanceRecord): Promise<void>;
  remove(key: string): Promise<void>;
  list(): Promise<InstanceRecord[]>;
}

/** Each instance is a file in `workloads/<app_id>/instances/`. */
export function createInstanceStore(workloadsDir: string, appId: AppId): InstanceStore {
  const directory = join(workloadsDir, appId, 'instances');
  const pathOf = (key: string) => join(directory, `${key}.json`);
  return {
    async save(record) {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      await replaceFile(pathOf(record.key), JSON.stringify(record), 0o600);
    },
    remove: (key) => rm(pathOf(key), { force: true }),
    async list() {
      const names = await readdir(directory).catch(ifMissing([]));
      const keys = names.filter((name) => name.endsWith('.json')).map((name) => name.slice(0, -'.json'.length));
      return Promise.all(
        keys
          .filter((key) => parseInstanceKey(key) !== undefined)
          .map(async (key) => JSON.parse(await readFile(pathOf(key), 'utf8')) as InstanceRecord),
      );
    },
  };
}
