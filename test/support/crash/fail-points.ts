/**
 * Loaded before a program (`node --import`), this puts fail points around every effect of the program: each SQL statement that
 * writes, each change of the file system, each process started or signalled, each HTTP request. At a fail point the process kills
 * itself on command. The program is not changed. Commands come over IPC; see `FailPointCommand`.
 *
 * Each effect has three fail points: `<effect>:before` it, once it was requested (`:sent`), and once it is known to have happened
 * (`:after`). With 'sql commit:sent' the process dies while the COMMIT is on its way, with 'fs rename packs:after' when the file has
 * its new name.
 */
import child_process from 'node:child_process';
import fs from 'node:fs/promises';
import http from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import { BroadcastChannel, isMainThread } from 'node:worker_threads';
import type { FailPointCommand } from './fail-point-command.ts';

type Effect = (...parameters: unknown[]) => unknown;

const visits = new Map<string, number>();
let visited = 0;
let armed: Extract<FailPointCommand, { kind: 'die' }> | undefined;
const kill = process.kill.bind(process);

function visit(point: string): void {
  const count = (visits.get(point) ?? 0) + 1;
  visits.set(point, count);
  visited += 1;
  if (armed === undefined) return;
  const reached = armed.point === undefined ? visited === armed.nth : armed.point === point && count === armed.nth;
  if (!reached) return;
  kill(process.pid, 'SIGKILL');
  // This thread does nothing more, however long the signal takes.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

function apply(command: FailPointCommand): void {
  visits.clear();
  visited = 0;
  armed = command.kind === 'die' ? command : undefined;
}

/** @returns undefined for a call that is not worth a fail point */
type NamePoint = (name: string, parameters: readonly unknown[]) => string | undefined;

/** Puts fail points around methods of an object. */
function addFailPoints(holder: object, names: readonly string[], pointOf: NamePoint): void {
  const effects = holder as Record<string, Effect>;
  for (const name of names) {
    const effect = effects[name];
    if (effect === undefined) throw new Error(`There is no ${name} to put fail points around.`);
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

/** 'packs' of '…/git/<id>/packs/<pack>.idx': the innermost directory whose name is not an id. */
function directoryOf(path: unknown): string {
  const parts = String(path).split('/').slice(0, -1);
  return parts.findLast((part) => /^[a-z][a-z-]*$/.test(part)) ?? 'elsewhere';
}

const readingVerbs = new Set(['select', 'listen', 'set', 'nothing']);

/** 'insert builds' for an insert into that table. Undefined for statements that only read. */
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
addFailPoints(
  fs,
  ['mkdir', 'rename', 'rm', 'writeFile', 'open', 'unlink', 'symlink', 'link', 'chmod', 'chown'],
  (name, [path]) => `${prefix}fs ${name} ${directoryOf(path)}`,
);

const commands = new BroadcastChannel('fail points');
commands.unref();

if (isMainThread) {
  addFailPoints(child_process, ['spawn', 'execFile'], (_, parameters) => `spawn ${programOf(parameters)}`);
  addFailPoints(http, ['request'], () => 'http request');
  addFailPoints(process, ['kill'], (_, [, signal]) => (signal === 0 ? undefined : `kill ${String(signal)}`));
  const { default: pg } = await import('pg');
  addFailPoints(pg.Client.prototype, ['query'], (_, parameters) => {
    const statement = statementOf(parameters);
    return statement === undefined ? undefined : `sql ${statement}`;
  });
  process.on('message', ({ failPoint: command }: { failPoint?: FailPointCommand }) => {
    // Other messages are the program's own.
    if (command === undefined) return;
    if (command.kind !== 'report') {
      commands.postMessage(command);
      apply(command);
    }
    process.send?.({ failPoints: Object.fromEntries(visits) });
  });
  process.channel?.unref();
} else {
  commands.onmessage = ({ data }) => apply(data as FailPointCommand);
}
syncBuiltinESMExports();
