import type { JobHandlers, JobName } from '#shared/jobs/jobs.ts';
import type { Metrics } from '#shared/metrics/metrics.ts';
import { startStopwatch } from '#shared/metrics/stopwatch.ts';

type Handler = (payload: unknown, signal: AbortSignal) => Promise<void>;

/** The same handlers, each attempt observed. One that was asked to stop is none: the job is run again. */
export function measureJobs(handlers: JobHandlers, metrics: Pick<Metrics, 'observeJob'>): JobHandlers {
  const measured = Object.entries(handlers).map(([name, handler]) => [
    name,
    measureJob(name as JobName, handler as Handler, metrics),
  ]);
  return Object.fromEntries(measured) as JobHandlers;
}

function measureJob(name: JobName, handler: Handler, metrics: Pick<Metrics, 'observeJob'>): Handler {
  return async (payload, signal) => {
    const elapsed = startStopwatch();
    try {
      await handler(payload, signal);
      metrics.observeJob({ name, outcome: 'done', seconds: elapsed() });
    } catch (error) {
      if (!signal.aborted) metrics.observeJob({ name, outcome: 'failed', seconds: elapsed() });
      throw error;
    }
  };
}
