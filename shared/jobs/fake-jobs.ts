import type { EnqueueOptions, JobHandlers, JobName, Jobs, JobWorker } from '#shared/jobs/jobs.ts';

const pollMilliseconds = 20;
const retryMilliseconds = 50;

interface Pending {
  name: JobName;
  payload: unknown;
  options: EnqueueOptions;
}

export interface FakeJobs extends Jobs {
  /** Runs jobs, any number at once. */
  start(handlers: JobHandlers): JobWorker;
}

/** Jobs in an array. A failed job is kept and tried again after a moment. */
export function createFakeJobs(): FakeJobs {
  let pending: Pending[] = [];
  let wake = (): void => undefined;

  return {
    async enqueue(_db, name, payload, options = {}) {
      const waiting = options.key === undefined ? undefined : pending.find((job) => job.options.key === options.key);
      pending = pending.filter((job) => job !== waiting);
      const runAt = options.keepsTime === true && waiting !== undefined ? waiting.options.runAt : options.runAt;
      pending.push({ name, payload, options: { ...options, runAt } });
      wake();
    },

    start(handlers) {
      const stopping = new AbortController();
      const busyQueues = new Set<string>();
      const running = new Set<Promise<void>>();

      const runJob = async (job: Pending): Promise<void> => {
        const { queue } = job.options;
        const handler = handlers[job.name] as (payload: unknown, signal: AbortSignal) => Promise<void>;
        try {
          await handler(job.payload, stopping.signal);
        } catch {
          pending.push({ ...job, options: { ...job.options, runAt: new Date(Date.now() + retryMilliseconds) } });
        }
        if (queue !== undefined) busyQueues.delete(queue);
      };
      const isReady = ({ options: { runAt, queue } }: Pending): boolean =>
        (runAt?.getTime() ?? 0) <= Date.now() && !(queue !== undefined && busyQueues.has(queue));
      const takeJobs = (): void => {
        if (stopping.signal.aborted) return;
        for (let index = pending.findIndex(isReady); index >= 0; index = pending.findIndex(isReady)) {
          const [job] = pending.splice(index, 1);
          if (job === undefined) return;
          if (job.options.queue !== undefined) busyQueues.add(job.options.queue);
          const run: Promise<void> = runJob(job).finally(() => {
            running.delete(run);
            takeJobs();
          });
          running.add(run);
        }
      };
      wake = () => queueMicrotask(takeJobs);
      const timer = setInterval(takeJobs, pollMilliseconds);
      takeJobs();
      return {
        async stop() {
          stopping.abort(new Error('The worker is stopping.'));
          clearInterval(timer);
          await Promise.all(running);
        },
      };
    },
  };
}
