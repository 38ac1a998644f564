import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ControlPlaneCall, ControlPlaneStart } from './control-plane-calls.ts';
import type { FailPointCommand, FailPointCounts } from './fail-point-command.ts';

/** The output of all control planes of a directory, one after the other. */
export const logName = 'control-planes.log';
const failPointsPath = fileURLToPath(new URL('./fail-points.ts', import.meta.url));
const mainPath = fileURLToPath(new URL('./control-plane-main.ts', import.meta.url));

/** It is unknown whether the call took effect: the control plane died before it answered, or lost its database meanwhile. */
export class OutcomeUnknown extends Error {}

export interface ControlPlaneProcess {
  readonly socketPath: string;
  /** Resolves when the process has ended. */
  readonly exited: Promise<void>;
  /** Resolves when it accepts calls and pushes, and runs jobs. */
  start(options: ControlPlaneStart): Promise<void>;
  /** @throws OutcomeUnknown; Error with the message of the control plane */
  call<Value>(call: ControlPlaneCall): Promise<Value>;
  failPoint(command: FailPointCommand): Promise<FailPointCounts>;
  kill(): Promise<void>;
  /** Ends it without SIGKILL, so that its compile cache is written for those that follow. */
  stop(): Promise<void>;
}

interface Message {
  id?: number;
  value?: unknown;
  error?: string;
  outage?: boolean;
  ready?: true;
  failPoints?: FailPointCounts;
}

/** Starts a process of control-plane-main.ts. Resolves when it waits for `start`. */
export async function spawnControlPlane(directory: string): Promise<ControlPlaneProcess> {
  const log = openSync(join(directory, logName), 'a');
  const child: ChildProcess = spawn(process.execPath, ['--import', failPointsPath, mainPath], {
    stdio: ['ignore', log, log, 'ipc'],
    // Compiling modules is most of a start.
    env: { ...process.env, NODE_COMPILE_CACHE: join(directory, 'compile-cache') },
  });
  closeSync(log);
  const exited = once(child, 'exit').then(() => undefined);
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  const commanded: ((counts: FailPointCounts) => void)[] = [];
  const ready = Promise.withResolvers<void>();
  child.on('message', ({ id, value, error, outage, ready: isReady, failPoints }: Message) => {
    if (isReady === true) ready.resolve();
    if (failPoints !== undefined) commanded.shift()?.(failPoints);
    if (id === undefined) return;
    const asked = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) asked?.resolve(value);
    else asked?.reject(outage === true ? new OutcomeUnknown(error) : new Error(error));
  });
  // A message to a process that has ended fails here, too.
  child.on('error', () => undefined);
  void exited.then(() => {
    ready.reject(new OutcomeUnknown('The control plane ended before it was ready.'));
    for (const { reject } of waiting.values()) reject(new OutcomeUnknown('The control plane died.'));
    waiting.clear();
    for (const resolve of commanded.splice(0)) resolve({});
  });
  let last = 0;
  const ask = (message: { start?: ControlPlaneStart; call?: ControlPlaneCall }): Promise<unknown> =>
    new Promise((resolve, reject) => {
      if (!child.connected) return reject(new OutcomeUnknown('The control plane has ended.'));
      last += 1;
      waiting.set(last, { resolve, reject });
      child.send({ id: last, ...message }, () => undefined);
    });
  await ready.promise;
  return {
    socketPath: join(directory, 'git.sock'),
    exited,
    start: async (options) => void (await ask({ start: options })),
    call: async <Value>(call: ControlPlaneCall) => (await ask({ call })) as Value,
    failPoint: (command) =>
      new Promise((resolve) => {
        if (!child.connected) return resolve({});
        commanded.push(resolve);
        child.send({ failPoint: command }, () => undefined);
      }),
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
    async stop() {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}
