import { GitFault } from '#shared/git/git-fault.ts';
import { isomorphicGitIndexer } from '#shared/git/packs/intake/isomorphic-git-indexer.ts';
import type { TaskRunner, TaskStreams } from '#shared/git/worker/task-runner.ts';
import { createTasks, type TaskLink, type TaskName, type TaskParams, type TaskResult } from '#shared/git/worker/tasks.ts';

const tasks = createTasks(isomorphicGitIndexer);

/** Runs tasks in the thread that calls, without zlib handles: for runtimes that have neither. Everything else waits meanwhile. */
export class CallingThread implements TaskRunner {
  readonly size = 1;
  readonly #closed = new AbortController();

  async run<Name extends TaskName>(
    name: Name,
    params: TaskParams<Name>,
    { input, output, signal }: TaskStreams = {},
  ): Promise<TaskResult<Name>> {
    this.#closed.signal.throwIfAborted();
    signal?.throwIfAborted();
    // Each task has a signal of its own, so that nothing of it stays in memory with the signal of all tasks.
    const ended = new AbortController();
    const end = (): void => ended.abort();
    for (const each of [signal, this.#closed.signal]) each?.addEventListener('abort', end, { once: true });
    const link: TaskLink = {
      input: readInput(input, ended.signal),
      signal: ended.signal,
      async write(chunk) {
        if (ended.signal.aborted) throw new GitFault('the client has gone');
        await output?.(chunk);
      },
    };
    try {
      // Its name determines the type of the parameters, which TypeScript cannot follow.
      const task = tasks[name] as (params: TaskParams<Name>, link: TaskLink) => Promise<unknown>;
      return (await task(params, link)) as TaskResult<Name>;
    } catch (error) {
      this.#closed.signal.throwIfAborted();
      throw error;
    } finally {
      for (const each of [signal, this.#closed.signal]) each?.removeEventListener('abort', end);
    }
  }

  async close(): Promise<void> {
    this.#closed.abort(new Error('git storage is closed'));
  }
}

/** Does not close `input` when the task needs no more of it: the rest belongs to somebody else. */
async function* readInput(input: AsyncIterator<Uint8Array> | undefined, signal: AbortSignal): AsyncIterable<Uint8Array> {
  const early = (): GitFault => new GitFault('the connection ended early');
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  aborted.catch(() => undefined);
  signal.addEventListener('abort', () => reject(early()), { once: true });
  while (input !== undefined) {
    if (signal.aborted) throw early();
    const next = await Promise.race([input.next(), aborted]).catch(() => {
      throw early();
    });
    if (next.done === true) return;
    yield next.value;
  }
}
