import type { AppId, TenantId } from '#shared/ids.ts';
import type { DriftTarget } from '#shared/platform/drift.ts';
import type { ClusterObject } from '../cluster/cluster.ts';

/**
 * Whose object it is. Undefined for objects that a controller has made of one of ours and given our labels: that controller looks after
 * them.
 */
export function driftTarget({ kind, metadata }: ClusterObject): DriftTarget | undefined {
  const { labels = {}, ownerReferences = [], name } = metadata;
  if (ownerReferences.length > 0) return undefined;
  const { 'app-id': appId, 'tenant-id': tenantId } = labels;
  if (appId !== undefined) return { of: 'app', appId: appId as AppId };
  if (tenantId !== undefined) return { of: 'tenant', tenantId: tenantId as TenantId };
  return kind === 'Certificate' || kind === 'ListenerSet' ? { of: 'certificate', host: name } : undefined;
}
