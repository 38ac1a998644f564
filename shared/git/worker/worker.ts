import { parentPort } from 'node:worker_threads';
import { GitFault } from '#shared/git/git-fault.ts';
import { nativeIndexer } from '#shared/git/packs/intake/native-indexer.ts';
import { PackGone } from '#shared/git/packs/reading/pack-gone.ts';
import { FlowWindow } from '#shared/git/worker/flow-window.ts';
import type { ErrorCause, FromWorker, ToWorker } from '#shared/git/worker/messages.ts';
import { createTasks, type TaskLink, type TaskName, type TaskParams } from '#shared/git/worker/tasks.ts';

/** The entry point of a worker thread. It runs any number of tasks concurrently, which yield to each other. */
const port = parentPort;
if (port === null) throw new Error('this module is the main of a worker thread');

interface RunningTask {
  chunks: (Uint8Array<ArrayBuffer> | 'end' | 'failed')[];
  wake: (() => void) | undefined;
  output: FlowWindow;
  aborted: AbortController;
}

const tasks = createTasks(nativeIndexer);
const running = new Map<number, RunningTask>();
const send = (message: FromWorker, transfer: ArrayBuffer[] = []): void => port.postMessage(message, transfer);

port.on('message', (message: ToWorker) => {
  if (message.kind === 'start') {
    void run(message.task, message.name as TaskName, message.params);
    return;
  }
  const task = running.get(message.task);
  if (task === undefined) return;
  if (message.kind === 'input') task.chunks.push(message.chunk);
  else if (message.kind === 'input-end') task.chunks.push(message.failed ? 'failed' : 'end');
  else if (message.kind === 'acknowledge') task.output.acknowledge(message.bytes);
  else abort(task);
  task.wake?.();
});

function abort(task: RunningTask): void {
  task.aborted.abort();
  task.output.close(new GitFault('the client has gone'));
  task.chunks.push('failed');
}

async function run<Name extends TaskName>(id: number, name: Name, params: unknown): Promise<void> {
  const state: RunningTask = { chunks: [], wake: undefined, output: new FlowWindow(), aborted: new AbortController() };
  running.set(id, state);
  const link: TaskLink = {
    input: readInput(id, state),
    signal: state.aborted.signal,
    async write(chunk) {
      await state.output.reserve(chunk.length);
      send({ kind: 'output', task: id, chunk }, [chunk.buffer]);
    },
  };
  try {
    // `WorkerPool.run` has type-checked that the parameters belong to the name.
    const task = tasks[name] as (params: TaskParams<Name>, link: TaskLink) => Promise<unknown>;
    const value = await task(params as TaskParams<Name>, link);
    send({ kind: 'result', task: id, value });
  } catch (error) {
    const { message, stack = '' } = error instanceof Error ? error : new Error(String(error));
    send({ kind: 'error', task: id, cause: causeOf(error), message, stack });
  } finally {
    running.delete(id);
  }
}

function causeOf(error: unknown): ErrorCause {
  if (error instanceof GitFault) return 'git-fault';
  return error instanceof PackGone ? 'pack-gone' : 'other';
}

async function* readInput(id: number, task: RunningTask): AsyncIterable<Uint8Array> {
  for (;;) {
    const chunk = task.chunks.shift();
    if (chunk === undefined) {
      await new Promise<void>((resolve) => {
        task.wake = resolve;
      });
    } else if (chunk === 'end') {
      return;
    } else if (chunk === 'failed') {
      throw new GitFault('the connection ended early');
    } else {
      yield chunk;
      send({ kind: 'acknowledge', task: id, bytes: chunk.length });
    }
  }
}
