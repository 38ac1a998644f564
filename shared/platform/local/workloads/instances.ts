/** What is written down about each instance, so that a control plane started later finds it again. */
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ifMissing } from '#shared/files/if-missing.ts';
import { replaceFile } from '#shared/files/replace-file.ts';
import type { AppId } from '#shared/ids.ts';
import { type InstanceIdentity, parseInstanceKey } from '../processes/instance-key.ts';
import type { SandboxRecord } from '../sandbox/sandbox-process.ts';

export interface InstanceRecord extends InstanceIdentity {
  /** As `newInstanceKey` makes it. */
  key: string;
  /** 'new': about to be started. 'stopping': must not get traffic any more, and ends. */
  state: 'new' | 'starting' | 'up' | 'crashed' | 'stopping';
  /** Undefined between "about to be started" and "started", and after a crash. */
  program?: SandboxRecord | undefined;
  /** 0: no port, not a web process. */
  port: number;
  /** IPv4 address of the app's network; undefined for the loopback of the host. */
  address?: string | undefined;
  /** ISO 8601; of the present process. */
  startedAt: string;
  restarts: number;
}

/** IPv4 address at which the host reaches an instance. */
export function addressOf({ address }: Pick<InstanceRecord, 'address'>): string {
  return address ?? '127.0.0.1';
}

export interface InstanceStore {
  /** One at a time for an instance. */
  save(record: InstanceRecord): Promise<void>;
  remove(key: string): Promise<void>;
  list(): Promise<InstanceRecord[]>;
}

/** One file an instance in `workloads/<app_id>/instances/`. */
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
