import type { Readable, Writable } from 'node:stream';
import { AppError } from '#shared/errors.ts';
import { limits } from '#shared/limits.ts';
import { joinWords } from '#shared/platform/command-words.ts';
import type { AttachedRun, RunOutput, RunTerminal } from '#shared/platform/workloads.ts';
import { describeEnd } from './programs.ts';
import { endGently, planRun, type RunDependencies } from './run-once.ts';

/** The inputs of the runs that are under way, by the ids of runs. */
export type RunInputs = Map<string, Writable>;

/** How long the command may take to read what it was given. */
const readSeconds = 10;

/** Runs a command while somebody reads its output. It ends with the reader, or when the signal aborts. */
export async function* runAttachedProgram(
  dependencies: RunDependencies & { inputs: RunInputs },
  run: AttachedRun,
  signal: AbortSignal,
): AsyncIterable<RunOutput> {
  signal.throwIfAborted();
  const { programs, inputs } = dependencies;
  const plan = planRun(run);
  const program = await programs.start({
    ...plan,
    command: run.terminal === undefined ? plan.command : inTerminal(plan.command, run.terminal),
    env: run.terminal === undefined ? plan.env : { ...plan.env, TERM: run.terminal.name },
    input: run.input,
  });
  let ending: Promise<void> | undefined;
  const endOnce = (): Promise<void> => (ending ??= endGently(dependencies, program.record).catch(() => undefined));
  const onAbort = (): void => void endOnce();
  let exited = false;
  signal.addEventListener('abort', onAbort, { once: true });
  // It may have aborted while the program was being started.
  if (signal.aborted) onAbort();
  if (program.stdin !== undefined) inputs.set(run.id, program.stdin);
  try {
    yield { started: true };
    yield* readOutput({ stdout: program.stdout, stderr: program.stderr });
    const { code } = await program.exited;
    exited = true;
    signal.throwIfAborted();
    const outOfMemory = await programs.ranOutOfMemory(program.record);
    if (outOfMemory) {
      const message = `The command ${describeEnd({ code, outOfMemory }, limits.app.memoryBytes)}.\n`;
      yield { stream: 'stderr', bytes: new TextEncoder().encode(message) };
    }
    yield { exitCode: code };
  } finally {
    signal.removeEventListener('abort', onAbort);
    inputs.delete(run.id);
    program.stdin?.destroy();
    // A migration that loses its reader may still end what it has begun.
    if (!exited) await endOnce();
    await programs.end(program.record);
  }
}

/** A command line that runs another one in a terminal, by the program `script` of util-linux. */
function inTerminal(command: string, { columns, rows }: RunTerminal): string {
  const inside = `stty columns ${columns} rows ${rows} 2>/dev/null; exec ${joinWords(['/bin/sh', '-c', command])}`;
  const script = joinWords(['script', '--quiet', '--flush', '--return', '--command', inside, '/dev/null']);
  const missing = joinWords(['echo', 'The image has no program `script`, so there is no terminal. Use `paas run --no-tty`.']);
  return `command -v script >/dev/null || { ${missing} >&2; exit 127; }; exec ${script}`;
}

/** See `Workloads.writeInput`. */
export async function writeRunInput(inputs: RunInputs, runId: string, bytes: Uint8Array | null): Promise<boolean> {
  const input = inputs.get(runId);
  if (input === undefined || input.destroyed || input.writableEnded) return false;
  if (input.writableNeedDrain && !(await drained(input)))
    throw new AppError('conflict', 'The command has not read its input yet. Send this part again later.');
  if (input.destroyed) return false;
  if (bytes === null) input.end();
  else input.write(bytes);
  return true;
}

function drained(input: Writable): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => settle(false), readSeconds * 1000);
    const onDrain = (): void => settle(true);
    function settle(result: boolean): void {
      clearTimeout(timer);
      input.off('drain', onDrain).off('close', onDrain);
      resolve(result);
    }
    input.on('drain', onDrain).on('close', onDrain);
  });
}

/** Both streams, in the order in which their parts arrive. */
async function* readOutput(streams: Record<'stdout' | 'stderr', Readable | undefined>): AsyncIterable<RunOutput> {
  const next = async (stream: 'stdout' | 'stderr', iterator: AsyncIterator<Uint8Array>) => ({
    stream,
    iterator,
    result: await iterator.next(),
  });
  const pending = new Map<string, ReturnType<typeof next>>();
  for (const stream of ['stdout', 'stderr'] as const) {
    const iterator: AsyncIterator<Uint8Array> | undefined = streams[stream]?.[Symbol.asyncIterator]();
    if (iterator !== undefined) pending.set(stream, next(stream, iterator));
  }
  while (pending.size > 0) {
    const { stream, iterator, result } = await Promise.race(pending.values());
    if (result.done === true) pending.delete(stream);
    else {
      pending.set(stream, next(stream, iterator));
      yield { stream, bytes: result.value };
    }
  }
}
