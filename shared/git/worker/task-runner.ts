import type { TaskName, TaskParams, TaskResult } from '#shared/git/worker/tasks.ts';

/** The streams of a task. */
export interface TaskStreams {
  /** Read and sent to the task until either ends. What is read beyond what the task needs is lost. */
  input?: AsyncIterator<Uint8Array>;
  /** Called with each piece of output, one after the other. */
  output?: (chunk: Uint8Array) => Promise<void>;
  signal?: AbortSignal;
}

/** Does git's heavy work. Drivers: `WorkerPool`, and `CallingThread` where there are no threads. */
export interface TaskRunner {
  /** How many tasks can make progress at a time. */
  readonly size: number;
  /**
   * Runs a task to its end. Rejects with a GitFault when the client or its data is at fault, with PackGone when the files of a pack
   * were deleted, with an Error when the server is at fault, and with whatever `streams.output` throws.
   */
  run<Name extends TaskName>(name: Name, params: TaskParams<Name>, streams?: TaskStreams): Promise<TaskResult<Name>>;
  /** Running tasks reject. */
  close(): Promise<void>;
}
