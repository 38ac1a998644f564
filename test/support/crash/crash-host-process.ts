import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FailPointCounts, FailPointOrder } from './fail-point-order.ts';
import type { HostCall, HostStart } from './host-calls.ts';

/** In the directory of the hosts: what they all had to say, one after the other. */
export const hostLogName = 'hosts.log';
const failPointsPath = fileURLToPath(new URL('./fail-points.ts', import.meta.url));
const hostPath = fileURLToPath(new URL('./crash-host.ts', import.meta.url));

/** What was asked may have happened or not: it died before it answered, or lost its database on the way. */
export class OutcomeUnknown extends Error {}

export interface CrashHost {
  readonly socketPath: string;
  readonly died: Promise<void>;
  start(options: HostStart): Promise<void>;
  /** @throws OutcomeUnknown, or an Error with what it answered */
  call<Value>(call: HostCall): Promise<Value>;
  order(order: FailPointOrder): Promise<FailPointCounts>;
  kill(): Promise<void>;
  /** Ends it in order, so that what it compiled is kept for those that follow. */
  leave(): Promise<void>;
}

interface Message {
  id?: number;
  value?: unknown;
  error?: string;
  outage?: boolean;
  standing?: true;
  failPoints?: FailPointCounts;
}

/** Resolves when it stands by; see crash-host.ts. */
export async function spawnCrashHost(directory: string): Promise<CrashHost> {
  const log = openSync(join(directory, hostLogName), 'a');
  const child: ChildProcess = spawn(process.execPath, ['--import', failPointsPath, hostPath], {
    stdio: ['ignore', log, log, 'ipc'],
    // Most of a start is the reading of modules.
    env: { ...process.env, NODE_COMPILE_CACHE: join(directory, 'compile-cache') },
  });
  closeSync(log);
  const died = once(child, 'exit').then(() => undefined);
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  const ordered: ((counts: FailPointCounts) => void)[] = [];
  const standing = Promise.withResolvers<void>();
  child.on('message', ({ id, value, error, outage, standing: stands, failPoints }: Message) => {
    if (stands === true) standing.resolve();
    if (failPoints !== undefined) ordered.shift()?.(failPoints);
    if (id === undefined) return;
    const asked = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) asked?.resolve(value);
    else asked?.reject(outage === true ? new OutcomeUnknown(error) : new Error(error));
  });
  // Asking one that is dead is an answer too.
  child.on('error', () => undefined);
  void died.then(() => {
    standing.reject(new OutcomeUnknown('The host ended before it stood by.'));
    for (const { reject } of waiting.values()) reject(new OutcomeUnknown('The host died.'));
    waiting.clear();
    for (const resolve of ordered.splice(0)) resolve({});
  });
  let last = 0;
  const ask = (message: { start?: HostStart; call?: HostCall }): Promise<unknown> =>
    new Promise((resolve, reject) => {
      if (!child.connected) return reject(new OutcomeUnknown('The host is dead.'));
      last += 1;
      waiting.set(last, { resolve, reject });
      child.send({ id: last, ...message }, () => undefined);
    });
  await standing.promise;
  return {
    socketPath: join(directory, 'git.sock'),
    died,
    start: async (options) => void (await ask({ start: options })),
    call: async <Value>(call: HostCall) => (await ask({ call })) as Value,
    order: (order) =>
      new Promise((resolve) => {
        if (!child.connected) return resolve({});
        ordered.push(resolve);
        child.send({ failPoint: order }, () => undefined);
      }),
    async kill() {
      child.kill('SIGKILL');
      await died;
    },
    async leave() {
      if (child.connected) child.disconnect();
      await died;
    },
  };
}
