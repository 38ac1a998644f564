import { type ChildProcess, spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { constants, getPriority, setPriority } from 'node:os';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { readInheritedDescriptors } from '../processes/inherited-descriptors.ts';
import {
  isAlive,
  type ProcessIdentity,
  readDescendants,
  readProcessIdentity,
  sendSignal,
} from '../processes/process-identity.ts';
import { infoDescriptor, niceness, type OpenFile, type SandboxPlan } from './sandbox.ts';

/** By this a running sandbox is found again from another process. Plain data that can be stored as JSON. */
export interface SandboxRecord {
  readonly id: string;
  /** The bubblewrap process outside. It exits with the exit code of the code inside. */
  readonly outer: ProcessIdentity;
  /** Process 1 inside: when it dies, the kernel ends everything in the sandbox. */
  readonly init: ProcessIdentity;
  /** What ends its program gently; left out: SIGTERM. */
  readonly stopSignal?: NodeJS.Signals;
}

/** Where the code's output goes: a pipe to read from, or an open file, which needs no reader. */
export type SandboxOutput = 'pipe' | { readonly fd: number };

/** Where the code's output goes, and whether its input comes from a pipe; left out: it is empty. */
export interface SandboxStreams {
  readonly stdout: SandboxOutput;
  readonly stderr: SandboxOutput;
  readonly stdin?: 'pipe' | undefined;
}

export interface SandboxExit {
  /** Exit code of the code inside; 128 plus the number of the signal that killed it. */
  readonly code: number;
}

/** A sandbox that this process has started. */
export interface SandboxedProcess {
  readonly record: SandboxRecord;
  /** Undefined when the output goes to a file. */
  readonly stdout: Readable | undefined;
  readonly stderr: Readable | undefined;
  /** Undefined when the input is empty. */
  readonly stdin: Writable | undefined;
  /** Resolves when no process is left inside. Pipes can still be read to their end then. */
  readonly exited: Promise<SandboxExit>;
  /** Lets this process end without waiting for the sandbox. */
  unref(): void;
}

/** The sandbox could not be set up; the message says why. */
export class SandboxStartError extends Error {}

/**
 * Executes a plan. The sandbox is a session and process group of its own.
 * @throws SandboxStartError with bwrap's message when the sandbox itself could not be set up
 */
export async function spawnSandboxed(id: string, plan: SandboxPlan, output: SandboxStreams): Promise<SandboxedProcess> {
  const child = spawn(plan.command, plan.args, {
    env: plan.env,
    cwd: '/',
    detached: true,
    stdio: coverInherited([
      output.stdin ?? 'ignore',
      output.stdout === 'pipe' ? 'pipe' : output.stdout.fd,
      output.stderr === 'pipe' ? 'pipe' : output.stderr.fd,
      ...plan.descriptors.map((data) => (isOpenFile(data) ? data.fd : ('pipe' as const))),
    ]),
  });
  const closed = waitForClose(child);
  const [stdout, stderr] = [child.stdout, child.stderr].map(buffered);
  const stdin = child.stdin ?? undefined;
  stdin?.on('error', () => undefined); // the code has ended, or closed it
  // Before bwrap gets its options, without which it starts nothing that would have the priority of this process.
  if (child.pid !== undefined) lowerPriority(child.pid);
  plan.descriptors.forEach((data, index) => {
    if (data !== undefined && !isOpenFile(data)) writeAll(child.stdio[index + 3] as Writable, data);
  });
  const initPid = await readInitPid(child.stdio[infoDescriptor] as Readable);
  const outer = child.pid === undefined ? undefined : await readProcessIdentity(child.pid);
  const init = initPid === undefined ? undefined : await readProcessIdentity(initPid);
  if (child.pid === undefined || initPid === undefined) {
    throw new SandboxStartError(await explainFailure(stderr, closed));
  }
  // A program that has ended already has no identity any more, and needs none.
  const gone = (pid: number): ProcessIdentity => ({ pid, startTicks: -1, bootId: '' });
  const record = { id, outer: outer ?? gone(child.pid), init: init ?? gone(initPid) };
  return {
    record,
    stdout,
    stderr,
    stdin,
    exited: closed.then(async (code) => {
      await endSandbox(record);
      return { code };
    }),
    unref() {
      child.unref();
      for (const stream of child.stdio) (stream as (Readable & { unref?(): void }) | null)?.unref?.();
    },
  };
}

/**
 * Sends a signal to every process inside, as Heroku does: a shell in between would not pass it on. Only bubblewrap itself, which waits
 * inside for the program of a container, gets none: everything would end with it.
 */
export async function signalSandbox(record: SandboxRecord, signal: NodeJS.Signals, bwrap: string): Promise<void> {
  if (!(await isAlive(record.init))) return;
  const launcher = await stat(bwrap);
  for (const pid of await readDescendants(record.init.pid)) {
    const program = await stat(`/proc/${pid}/exe`).catch(() => undefined);
    if (program?.ino !== launcher.ino || program.dev !== launcher.dev) sendSignal(pid, signal);
  }
}

/** Kills everything inside and waits until it has ended. Does nothing when nothing is left. */
export async function endSandbox(record: SandboxRecord): Promise<void> {
  for (const identity of [record.init, record.outer]) {
    if (await isAlive(identity)) sendSignal(identity.pid, 'SIGKILL');
  }
  for (let wait = 1; await isAlive(record.init); wait = Math.min(wait * 2, 50))
    await new Promise((resolve) => setTimeout(resolve, wait));
}

/** While true, the code inside may still be running. */
export async function isSandboxAlive(record: SandboxRecord): Promise<boolean> {
  return isAlive(record.init);
}

function isOpenFile(data: SandboxPlan['descriptors'][number]): data is OpenFile {
  return typeof data === 'object' && 'fd' in data;
}

type Stdio = 'ignore' | 'pipe' | number;

// Read once: descriptors that are opened later are never inherited.
const inherited = readInheritedDescriptors(3);
const nothing = inherited.length === 0 ? undefined : openSync('/dev/null', 'r');

/** Replaces descriptors that this process inherited: through an open file the sandbox would get around its mounts. */
function coverInherited(stdio: readonly Stdio[]): Stdio[] {
  const length = Math.max(stdio.length, ...inherited.map((descriptor) => descriptor + 1));
  return Array.from({ length }, (_, at) => stdio[at] ?? (inherited.includes(at) && nothing !== undefined ? nothing : 'ignore'));
}

function lowerPriority(pid: number): void {
  try {
    setPriority(pid, Math.min(getPriority() + niceness, constants.priority.PRIORITY_LOW));
  } catch {
    // It has ended already; its exit says why.
  }
}

function writeAll(stream: Writable, data: string | Uint8Array): void {
  stream.on('error', () => undefined); // bwrap has ended early; its exit says why
  stream.end(data);
}

function waitForClose(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.once('error', () => resolve(127));
    // 'exit', not 'close', which would wait for descendants that keep the output open; `endSandbox` kills those, and the streams end.
    child.once('exit', (code, signal) => resolve(code ?? 128 + (signal === 'SIGKILL' ? 9 : 15)));
  });
}

/** bwrap writes one JSON object with "child-pid" when the namespaces exist. @returns undefined when it did not get that far */
async function readInitPid(stream: Readable): Promise<number | undefined> {
  let text = '';
  stream.setEncoding('utf8');
  for await (const chunk of stream) text += chunk;
  const pid = /"child-pid"\s*:\s*(\d+)/.exec(text)?.[1];
  return pid === undefined ? undefined : Number(pid);
}

/** Buffers the output: Node drops unread output when a child exits, and a short program may exit before anybody reads. */
function buffered(stream: Readable | null): Readable | undefined {
  return stream?.pipe(new PassThrough());
}

async function explainFailure(stderr: Readable | undefined, closed: Promise<number>): Promise<string> {
  let output = '';
  if (stderr !== undefined) {
    stderr.setEncoding('utf8');
    for await (const chunk of stderr) output += chunk;
  }
  const code = await closed;
  return `The sandbox could not be set up (exit ${code}): ${output.trim() || 'no message'}`;
}
