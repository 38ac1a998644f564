import type { Metrics } from '#shared/metrics/metrics.ts';
import { startStopwatch } from '#shared/metrics/stopwatch.ts';
import type { BuildRunner } from '#shared/platform/builds.ts';

/** The same runner, each run observed. */
export function measureBuilds(builds: BuildRunner, metrics: Pick<Metrics, 'observeBuild'>): BuildRunner {
  return {
    async runBuild(spec, line, signal) {
      const elapsed = startStopwatch();
      try {
        const result = await builds.runBuild(spec, line, signal);
        metrics.observeBuild({ outcome: result.status, seconds: elapsed() });
        return result;
      } catch (error) {
        metrics.observeBuild({ outcome: signal.aborted ? 'ended' : 'failed', seconds: elapsed() });
        throw error;
      }
    },
  };
}
