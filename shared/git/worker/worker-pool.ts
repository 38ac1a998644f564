import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { GitFault } from '#shared/git/git-fault.ts';
import { PackGone } from '#shared/git/packs/reading/pack-gone.ts';
import { FlowWindow } from '#shared/git/worker/flow-window.ts';
import type { ErrorCause, FromWorker, ToWorker } from '#shared/git/worker/messages.ts';
import type { TaskRunner, TaskStreams } from '#shared/git/worker/task-runner.ts';
import type { TaskName, TaskParams, TaskResult } from '#shared/git/worker/tasks.ts';

interface RunningTask {
  input: FlowWindow;
  resolve(value: unknown): void;
  reject(error: Error): void;
  output(chunk: Uint8Array<ArrayBuffer>): void;
  finished(): Promise<void>;
}

/**
 * Size of a thread's young generation. A thread creates buffers rather than objects: with Node's default, several times as much,
 * each thread would keep some 10 MiB more after heavy work.
 */
const youngMegabytes = 8;

interface PooledWorker {
  thread: Worker;
  tasks: Map<number, RunningTask>;
}

/** The threads that do git's heavy work. They start when they are first needed, and share the tasks evenly. */
export class WorkerPool implements TaskRunner {
  /** How many threads there are at most. */
  readonly size: number;
  readonly #workers: PooledWorker[] = [];
  #nextTask = 1;
  #closed = false;

  constructor(size = Math.max(2, availableParallelism())) {
    this.size = size;
  }

  async run<Name extends TaskName>(name: Name, params: TaskParams<Name>, streams: TaskStreams = {}): Promise<TaskResult<Name>> {
    if (this.#closed) throw new Error('git storage is closed');
    streams.signal?.throwIfAborted();
    const worker = this.#leastBusy();
    const id = this.#nextTask++;
    const send = (message: ToWorker, transfer: ArrayBuffer[] = []): void => worker.thread.postMessage(message, transfer);
    const abort = (): void => send({ kind: 'abort', task: id });
    let outputs = Promise.resolve();
    let outputError: Error | undefined;
    let ended = false;

    const result = new Promise<unknown>((resolve, reject) => {
      worker.tasks.set(id, {
        input: new FlowWindow(),
        resolve,
        reject,
        finished: () => outputs,
        output(chunk) {
          outputs = outputs.then(async () => {
            if (outputError !== undefined) return;
            try {
              const bytes = chunk.length;
              await streams.output?.(chunk);
              send({ kind: 'acknowledge', task: id, bytes });
            } catch (error) {
              outputError = error instanceof Error ? error : new Error(String(error));
              abort();
            }
          });
        },
      });
    });
    const task = worker.tasks.get(id);
    streams.signal?.addEventListener('abort', abort, { once: true });
    send({ kind: 'start', task: id, name, params });
    if (streams.input !== undefined && task !== undefined)
      void feed(streams.input, { window: task.input, send, task: id, ended: () => ended });
    try {
      return (await result) as TaskResult<Name>;
    } catch (error) {
      await outputs;
      throw outputError ?? error;
    } finally {
      ended = true;
      await outputs;
      task?.input.close(new Error('the task has ended'));
      streams.signal?.removeEventListener('abort', abort);
      worker.tasks.delete(id);
      if (worker.tasks.size === 0) worker.thread.unref();
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#workers.splice(0).map(({ thread }) => thread.terminate()));
  }

  #leastBusy(): PooledWorker {
    const idle = this.#workers.reduce<PooledWorker | undefined>(
      (best, each) => (best === undefined || each.tasks.size < best.tasks.size ? each : best),
      undefined,
    );
    const chosen = idle === undefined || (idle.tasks.size > 0 && this.#workers.length < this.size) ? this.#start() : idle;
    chosen.thread.ref();
    return chosen;
  }

  #start(): PooledWorker {
    const thread = new Worker(new URL('./worker.ts', import.meta.url), {
      resourceLimits: { maxYoungGenerationSizeMb: youngMegabytes },
    });
    const worker: PooledWorker = { thread, tasks: new Map() };
    thread.on('message', (message: FromWorker) => deliver(worker, message));
    let problem = new Error('git storage is closed');
    thread.on('error', (error) => {
      problem = error instanceof Error ? error : new Error(String(error));
    });
    thread.on('exit', () => {
      const index = this.#workers.indexOf(worker);
      if (index >= 0) this.#workers.splice(index, 1);
      for (const task of worker.tasks.values()) task.reject(problem);
    });
    this.#workers.push(worker);
    return worker;
  }
}

const errors: Readonly<Record<ErrorCause, new (message: string) => Error>> = {
  'git-fault': GitFault,
  'pack-gone': PackGone,
  other: Error,
};

function deliver(worker: PooledWorker, message: FromWorker): void {
  const task = worker.tasks.get(message.task);
  if (task === undefined) return;
  switch (message.kind) {
    case 'output':
      task.output(message.chunk);
      break;
    case 'acknowledge':
      task.input.acknowledge(message.bytes);
      break;
    case 'result':
      void task.finished().then(() => task.resolve(message.value));
      break;
    case 'error': {
      const error = new errors[message.cause](message.message);
      error.stack = message.stack;
      task.reject(error);
      break;
    }
  }
}

interface FeedOptions {
  window: FlowWindow;
  send: (message: ToWorker, transfer?: ArrayBuffer[]) => void;
  task: number;
  ended: () => boolean;
}

/** Sends a task its input. */
async function feed(input: AsyncIterator<Uint8Array>, { window, send, task, ended }: FeedOptions): Promise<void> {
  try {
    for (;;) {
      const next = await input.next();
      if (ended()) return;
      if (next.done === true) {
        send({ kind: 'input-end', task, failed: false });
        return;
      }
      // A copy: the chunk may be a view of a buffer that is used elsewhere, and transferring detaches it.
      const chunk = new Uint8Array(next.value);
      await window.reserve(chunk.length);
      send({ kind: 'input', task, chunk }, [chunk.buffer]);
    }
  } catch {
    if (!ended()) send({ kind: 'input-end', task, failed: true });
  }
}
