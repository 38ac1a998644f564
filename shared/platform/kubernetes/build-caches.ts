import type { AppId } from '#shared/ids.ts';
import { buildCacheName, buildNamespace } from '#shared/names.ts';
import type { BuildCaches } from '#shared/platform/build-caches.ts';
import { planBuildCache } from './build-cache-plan.ts';
import type { Cluster, ObjectReference } from './cluster/cluster.ts';
import { kinds } from './cluster/kinds.ts';
import { appLabels } from './names.ts';

/** A claim for a volume for each app. */
export function createKubernetesBuildCaches(cluster: Cluster): BuildCaches {
  const caches: BuildCaches = {
    async ensureCache(appId) {
      if ((await cluster.create(planBuildCache(appId))) === 'created') return { state: 'created' };
      const found = await caches.readCache(appId);
      // Gone in this moment.
      if (found === undefined) return caches.ensureCache(appId);
      return { state: found.state === 'ready' ? 'existed' : 'deleting' };
    },
    async deleteCache(appId) {
      if (!(await cluster.delete(claimOf(appId)))) return false;
      // A claim stays while a pod refers to it, also one that has ended. A build that runs keeps the claim until it ends.
      const runs = await cluster.list({ kind: kinds.pipelineRun, namespace: buildNamespace, labels: appLabels(appId) });
      for (const { metadata, status } of runs)
        if (hasEnded(status)) await cluster.delete({ kind: kinds.pipelineRun, name: metadata.name, namespace: buildNamespace });
      return true;
    },
    async readCache(appId) {
      const claim = await cluster.read(claimOf(appId));
      if (claim === undefined) return undefined;
      return { state: claim.metadata.deletionTimestamp === undefined ? 'ready' : 'deleting' };
    },
  };
  return caches;
}

function claimOf(appId: AppId): ObjectReference {
  return { kind: kinds.persistentVolumeClaim, name: buildCacheName(appId), namespace: buildNamespace };
}

/** Of a PipelineRun: its condition `Succeeded` is True or False. */
function hasEnded(status: unknown): boolean {
  const { conditions = [] } = (status ?? {}) as { conditions?: readonly { type: string; status: string }[] };
  return conditions.some(({ type, status: value }) => type === 'Succeeded' && value !== 'Unknown');
}
