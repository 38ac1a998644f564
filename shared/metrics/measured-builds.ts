import type { Metrics } from '#shared/metrics/metrics.ts';
import { startStopwatch } from '#shared/metrics/stopwatch.ts';
import type { Builds } from '#shared/platform/builds.ts';

/** The same builds; each end that a watcher sees is observed. Builds that the platform lost run again and do not count. */
export function measureBuilds(builds: Builds, metrics: Pick<Metrics, 'observeBuild'>): Builds {
  return {
    ...builds,
    async *watchBuild(buildId, afterLine, signal) {
      const elapsed = startStopwatch();
      try {
        for await (const event of builds.watchBuild(buildId, afterLine, signal)) {
          if (event.type === 'ended' && event.outcome.status !== 'lost') {
            const { status } = event.outcome;
            metrics.observeBuild({ outcome: status === 'canceled' ? 'ended' : status, seconds: event.seconds });
          }
          yield event;
        }
      } catch (error) {
        if (!signal.aborted) metrics.observeBuild({ outcome: 'failed', seconds: elapsed() });
        throw error;
      }
    },
  };
}
