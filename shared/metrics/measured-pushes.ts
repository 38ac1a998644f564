import type { Pushes } from '#shared/core/pushes/pushes.ts';
import type { ApplyPush } from '#shared/git/git-storage.ts';
import type { Metrics } from '#shared/metrics/metrics.ts';
import { startStopwatch } from '#shared/metrics/stopwatch.ts';

/** The same pushes, each observed. */
export function measurePushes(pushes: Pushes, metrics: Pick<Metrics, 'observePush'>): Pushes {
  return {
    async openRepository(principal, appName, access) {
      const opened = await pushes.openRepository(principal, appName, access);
      return { ...opened, applyPush: measurePush(opened.applyPush, metrics) };
    },
  };
}

function measurePush(applyPush: ApplyPush, metrics: Pick<Metrics, 'observePush'>): ApplyPush {
  return async (request, report, clientGone) => {
    const elapsed = startStopwatch();
    try {
      const results = await applyPush(request, report, clientGone);
      const accepted = results.some((result) => result.status === 'ok');
      metrics.observePush({ outcome: accepted ? 'accepted' : 'rejected', seconds: elapsed() });
      return results;
    } catch (error) {
      metrics.observePush({ outcome: 'failed', seconds: elapsed() });
      throw error;
    }
  };
}
