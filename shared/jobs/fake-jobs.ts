import type { EnqueueOptions, JobHandlers, JobName, JobPayloads, Jobs, JobWorker } from '#shared/jobs/jobs.ts';

interface Pending {
  name: JobName;
  payload: unknown;
  options: EnqueueOptions;
}

/** The twin for tests: jobs in an array, run by `start`. A failed job is kept and tried again after a moment. */
export class FakeJobs implements Jobs {
  private pending: Pending[] = [];
  private wake: () => void = () => {};

  enqueue<Name extends JobName>(
    _db: unknown,
    name: Name,
    payload: JobPayloads[Name],
    options: EnqueueOptions = {},
  ): Promise<void> {
    const waiting = options.key === undefined ? undefined : this.pending.find((job) => job.options.key === options.key);
    this.pending = this.pending.filter((job) => job !== waiting);
    const { runAt: asked, ...others } = options;
    const runAt = options.keepsTime === true && waiting !== undefined ? waiting.options.runAt : asked;
    this.pending.push({ name, payload, options: { ...others, runAt } });
    this.wake();
    return Promise.resolve();
  }

  start(handlers: JobHandlers): JobWorker {
    const stopping = new AbortController();
    const busyQueues = new Set<string>();
    const running = new Set<Promise<void>>();

    const runJob = async (job: Pending): Promise<void> => {
      const handler = handlers[job.name] as (payload: unknown, signal: AbortSignal) => Promise<void>;
      try {
        await handler(job.payload, stopping.signal);
      } catch {
        this.pending.push({ ...job, options: { ...job.options, runAt: new Date(Date.now() + 50) } });
      }
      if (job.options.queue !== undefined) busyQueues.delete(job.options.queue);
    };
    const takeJobs = (): void => {
      if (stopping.signal.aborted) return;
      const ready = (job: Pending): boolean =>
        (job.options.runAt?.getTime() ?? 0) <= Date.now() &&
        !(job.options.queue !== undefined && busyQueues.has(job.options.queue));
      for (let index = this.pending.findIndex(ready); index >= 0; index = this.pending.findIndex(ready)) {
        const [job] = this.pending.splice(index, 1);
        if (job === undefined) return;
        if (job.options.queue !== undefined) busyQueues.add(job.options.queue);
        const run: Promise<void> = runJob(job).finally(() => {
          running.delete(run);
          takeJobs();
        });
        running.add(run);
      }
    };
    this.wake = () => queueMicrotask(takeJobs);
    const timer = setInterval(takeJobs, 20);
    takeJobs();
    return {
      stop: async () => {
        stopping.abort(new Error('The worker is stopping.'));
        clearInterval(timer);
        await Promise.all(running);
      },
    };
  }
}
