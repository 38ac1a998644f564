import { type ChildProcess, spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { readInheritedDescriptors } from '../processes/inherited-descriptors.ts';
import {
  isAlive,
  type ProcessIdentity,
  readDescendants,
  readProcessIdentity,
  sendSignal,
} from '../processes/process-identity.ts';
import { infoDescriptor, type SandboxPlan } from './sandbox.ts';

/** What is written down of a running sandbox, to find it again from another process. Plain data, fit for JSON. */
export interface SandboxRecord {
  readonly id: string;
  /** bubblewrap on the outside; its exit is the code's. */
  readonly outer: ProcessIdentity;
  /** Process 1 inside: when it dies, the kernel ends everything in the sandbox. */
  readonly init: ProcessIdentity;
}

/** Where the code's output goes: a pipe to read from, or an open file (then nobody here has to be alive to take it). */
export type SandboxOutput = 'pipe' | { readonly fd: number };

export interface SandboxExit {
  /** Exit code of the code inside; a signal's number plus 128 when it was killed by one. */
  readonly code: number;
}

export interface SandboxedProcess {
  readonly record: SandboxRecord;
  /** Undefined when the output goes to a file. */
  readonly stdout: Readable | undefined;
  readonly stderr: Readable | undefined;
  /** Resolves once nothing is left alive inside. What a pipe still holds then can be read to its end. */
  readonly exited: Promise<SandboxExit>;
  /** Lets this process end without waiting for the sandbox. */
  unref(): void;
}

export class SandboxStartError extends Error {}

/**
 * Carries a plan out. stdin is empty; the sandbox is a session and process group of its own.
 * @throws SandboxStartError when the sandbox itself could not be set up; what bwrap said is in its message
 */
export async function spawnSandboxed(
  id: string,
  plan: SandboxPlan,
  output: { stdout: SandboxOutput; stderr: SandboxOutput },
): Promise<SandboxedProcess> {
  const child = spawn(plan.command, plan.args, {
    env: plan.env,
    cwd: '/',
    detached: true,
    stdio: coverInherited([
      'ignore',
      output.stdout === 'pipe' ? 'pipe' : output.stdout.fd,
      output.stderr === 'pipe' ? 'pipe' : output.stderr.fd,
      ...plan.descriptors.map(() => 'pipe' as const),
    ]),
  });
  const closed = waitForClose(child);
  const [stdout, stderr] = [child.stdout, child.stderr].map(keepOutput);
  plan.descriptors.forEach((data, index) => {
    if (data !== undefined) handOver(child.stdio[index + 3] as Writable, data);
  });
  const initPid = await readInitPid(child.stdio[infoDescriptor] as Readable);
  const outer = child.pid === undefined ? undefined : await readProcessIdentity(child.pid);
  const init = initPid === undefined ? undefined : await readProcessIdentity(initPid);
  if (child.pid === undefined || initPid === undefined) {
    throw new SandboxStartError(await explainFailure(stderr, closed));
  }
  // A program that was over before we looked has no identity any more, and needs none.
  const gone = (pid: number): ProcessIdentity => ({ pid, startTicks: -1, bootId: '' });
  const record = { id, outer: outer ?? gone(child.pid), init: init ?? gone(initPid) };
  return {
    record,
    stdout,
    stderr,
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

/** Every process inside gets the signal, as a Heroku dyno's do: a shell in between does not pass it on. */
export async function signalSandbox(record: SandboxRecord, signal: NodeJS.Signals): Promise<void> {
  if (!(await isAlive(record.init))) return;
  for (const pid of await readDescendants(record.init.pid)) sendSignal(pid, signal);
}

/** Kills everything inside and waits until it is gone. Harmless when nothing is left. */
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

type Stdio = 'ignore' | 'pipe' | number;

// Once: what is not there when we start is never inherited.
const inherited = readInheritedDescriptors(3);
const nothing = inherited.length === 0 ? undefined : openSync('/dev/null', 'r');

/** The sandbox gets nothing that was left open in us: an open file is a way around every mount. */
function coverInherited(stdio: readonly Stdio[]): Stdio[] {
  const length = Math.max(stdio.length, ...inherited.map((descriptor) => descriptor + 1));
  return Array.from({ length }, (_, at) => stdio[at] ?? (inherited.includes(at) && nothing !== undefined ? nothing : 'ignore'));
}

function handOver(stream: Writable, data: string | Uint8Array): void {
  stream.on('error', () => undefined); // bwrap gave up early; its exit tells why
  stream.end(data);
}

function waitForClose(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.once('error', () => resolve(127));
    // 'exit', not 'close': a descendant that keeps the output open must not keep us waiting; `endSandbox` ends it, and
    // the readers see the end of the streams then.
    child.once('exit', (code, signal) => resolve(code ?? 128 + (signal === 'SIGKILL' ? 9 : 15)));
  });
}

/** bwrap writes one JSON object with "child-pid" once the namespaces exist; undefined when it never came to that. */
async function readInitPid(stream: Readable): Promise<number | undefined> {
  let text = '';
  stream.setEncoding('utf8');
  for await (const chunk of stream) text += chunk;
  const pid = /"child-pid"\s*:\s*(\d+)/.exec(text)?.[1];
  return pid === undefined ? undefined : Number(pid);
}

/** Node throws away what nobody reads when a child exits, and a short program is over before anybody here does. */
function keepOutput(stream: Readable | null): Readable | undefined {
  return stream?.pipe(new PassThrough());
}

async function explainFailure(stderr: Readable | undefined, closed: Promise<number>): Promise<string> {
  let said = '';
  if (stderr !== undefined) {
    stderr.setEncoding('utf8');
    for await (const chunk of stderr) said += chunk;
  }
  const code = await closed;
  return `The sandbox could not be set up (exit ${code}): ${said.trim() || 'no message'}`;
}
