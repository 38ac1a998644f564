import type { Cluster } from '../cluster/cluster.ts';
import type { Kind } from '../cluster/kinds.ts';
import { applyAlone } from './apply-alone.ts';
import type { DriftIndex } from './drift-index.ts';

/**
 * The cluster, with every write to a watched kind noted: what the platform itself does is no drift. An apply also removes what others have
 * added.
 */
export function createObservedCluster(
  cluster: Cluster,
  index: Pick<DriftIndex, 'wrote' | 'deletes'>,
  watched: readonly Kind[],
): Cluster {
  const isWatched = (kind: string): boolean => watched.some((each) => each.kind === kind);
  return {
    ...cluster,
    async apply(object) {
      const applied = await applyAlone(cluster, object);
      if (isWatched(applied.kind)) index.wrote(applied);
      return applied;
    },
    async patch(reference, change, subresource) {
      const patched = await cluster.patch(reference, change, subresource);
      if (patched !== undefined && isWatched(reference.kind.kind)) index.wrote(patched);
      return patched;
    },
    async delete(reference) {
      if (!isWatched(reference.kind.kind)) return cluster.delete(reference);
      const takeBack = index.deletes(reference);
      const isDeleted = await cluster.delete(reference);
      if (!isDeleted) takeBack();
      return isDeleted;
    },
  };
}
