import type { V1PersistentVolumeClaim } from '@kubernetes/client-node';
import type { AppId } from '#shared/ids.ts';
import { buildCacheName, buildNamespace } from '#shared/names.ts';
import type { ClusterObject } from './cluster/cluster.ts';
import { appLabels } from './names.ts';

/** SPEC.md §3: 5 Gi, ReadWriteOnce, of the default storage class. */
export function planBuildCache(appId: AppId): ClusterObject {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: buildCacheName(appId), namespace: buildNamespace, labels: appLabels(appId) },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '5Gi' } } },
  } satisfies V1PersistentVolumeClaim;
}
