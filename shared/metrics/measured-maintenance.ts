import type { GitMaintenance } from '#shared/git/git-storage.ts';
import type { Metrics } from '#shared/metrics/metrics.ts';
import { startStopwatch } from '#shared/metrics/stopwatch.ts';

/** The same maintenance, observed where it has changed something. */
export function measureMaintenance(
  maintenance: GitMaintenance,
  metrics: Pick<Metrics, 'observeRepack' | 'observeGarbage'>,
): GitMaintenance {
  return {
    needsRepack: (db, repositoryId) => maintenance.needsRepack(db, repositoryId),
    async repack(repositoryId, signal) {
      const elapsed = startStopwatch();
      const facts = await maintenance.repack(repositoryId, signal);
      if (facts.packs > 0) metrics.observeRepack({ packs: facts.packs, seconds: elapsed() });
      return facts;
    },
    async collectGarbage(repositoryId, readRoots, signal) {
      const facts = await maintenance.collectGarbage(repositoryId, readRoots, signal);
      if (facts !== undefined) metrics.observeGarbage(facts);
      return facts;
    },
  };
}
