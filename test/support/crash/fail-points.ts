/**
 * Loaded before a program (`node --import`), this makes every effect it has on the world a named point at which it dies
 * on request: each statement of SQL, each change of the file system, each process started or signalled, each request.
 * The program itself knows nothing of it. Orders come over IPC; see `FailPointOrder`.
 *
 * Each effect has three: `<effect>:before` it, when it was asked for (`:sent`), and when it is known to have happened
 * (`:after`). So 'sql commit:sent' dies with the COMMIT on the wire, 'fs rename packs:after' with the file in its place.
 */
import child_process from 'node:child_process';
import fs from 'node:fs/promises';
import http from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import { BroadcastChannel, isMainThread } from 'node:worker_threads';
import type { FailPointOrder } from './fail-point-order.ts';

type Effect = (...parameters: unknown[]) => unknown;

const visits = new Map<string, number>();
let passed = 0;
let armed: Extract<FailPointOrder, { kind: 'die' }> | undefined;
const kill = process.kill.bind(process);

function visit(point: string): void {
  const count = (visits.get(point) ?? 0) + 1;
  visits.set(point, count);
  passed += 1;
  if (armed === undefined) return;
  const reached = armed.point === undefined ? passed === armed.nth : armed.point === point && count === armed.nth;
  if (!reached) return;
  kill(process.pid, 'SIGKILL');
  // Nothing more happens in this thread, however long the signal takes.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

function take(order: FailPointOrder): void {
  visits.clear();
  passed = 0;
  armed = order.kind === 'die' ? order : undefined;
}

type NamePoint = (name: string, parameters: readonly unknown[]) => string | undefined;

/** Puts points around some of an object's methods; a call without a name has no effect worth a point. */
function watch(holder: object, names: readonly string[], pointOf: NamePoint): void {
  const effects = holder as Record<string, Effect>;
  for (const name of names) {
    const effect = effects[name];
    if (effect === undefined) throw new Error(`There is no ${name} to watch.`);
    effects[name] = function (this: unknown, ...parameters: unknown[]) {
      const point = pointOf(name, parameters);
      if (point === undefined) return effect.apply(this, parameters);
      visit(`${point}:before`);
      const result = effect.apply(this, parameters);
      visit(`${point}:sent`);
      if (!(result instanceof Promise)) return result;
      return result.then((value: unknown) => {
        visit(`${point}:after`);
        return value;
      });
    };
  }
}

/** 'packs' of '…/git/<id>/packs/<pack>.idx': the innermost directory with a name that says something. */
function placeOf(path: unknown): string {
  const parts = String(path).split('/').slice(0, -1);
  return parts.findLast((part) => /^[a-z][a-z-]*$/.test(part)) ?? 'elsewhere';
}

const readingVerbs = new Set(['select', 'listen', 'set', 'nothing']);

/** 'insert builds' of an insert into that table. Undefined for what only reads. */
function statementOf([first]: readonly unknown[]): string | undefined {
  const text = typeof first === 'string' ? first : ((first as { text?: string } | undefined)?.text ?? '');
  const verb = /^\s*(\w+)/.exec(text)?.[1]?.toLowerCase() ?? 'nothing';
  const called = /graphile_worker"?\."?(add_job|force_unlock_workers)/.exec(text)?.[1];
  if (called !== undefined) return called;
  if (readingVerbs.has(verb)) return undefined;
  const table = /(?:into|update|from)\s+(?:"?graphile_worker"?\.)?"?(\w+)/i.exec(text)?.[1];
  return table === undefined ? verb : `${verb} ${table}`;
}

function programOf([file]: readonly unknown[]): string {
  return String(file).split('/').at(-1) ?? '';
}

const prefix = isMainThread ? '' : 'worker ';
watch(
  fs,
  ['mkdir', 'rename', 'rm', 'writeFile', 'open', 'unlink', 'symlink', 'link', 'chmod', 'chown'],
  (name, [path]) => `${prefix}fs ${name} ${placeOf(path)}`,
);

const orders = new BroadcastChannel('fail points');
orders.unref();

if (isMainThread) {
  watch(child_process, ['spawn', 'execFile'], (_, parameters) => `spawn ${programOf(parameters)}`);
  watch(http, ['request'], () => 'http request');
  watch(process, ['kill'], (_, [, signal]) => (signal === 0 ? undefined : `kill ${String(signal)}`));
  const { default: pg } = await import('pg');
  watch(pg.Client.prototype, ['query'], (_, parameters) => {
    const statement = statementOf(parameters);
    return statement === undefined ? undefined : `sql ${statement}`;
  });
  process.on('message', ({ failPoint: order }: { failPoint?: FailPointOrder }) => {
    // Other messages are the program's own.
    if (order === undefined) return;
    if (order.kind !== 'tell') {
      orders.postMessage(order);
      take(order);
    }
    process.send?.({ failPoints: Object.fromEntries(visits) });
  });
  process.channel?.unref();
} else {
  orders.onmessage = ({ data }) => take(data as FailPointOrder);
}
syncBuiltinESMExports();
