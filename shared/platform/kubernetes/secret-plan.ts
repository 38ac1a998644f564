import type { V1Secret } from '@kubernetes/client-node';
import type { ClusterObject, ObjectMetadata } from './cluster/cluster.ts';

/** A Secret with these values. */
export function planSecret(
  metadata: Pick<ObjectMetadata, 'name' | 'namespace' | 'labels' | 'annotations' | 'ownerReferences'>,
  values: Readonly<Record<string, string>>,
  type = 'Opaque',
): ClusterObject {
  const data = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, Buffer.from(value).toString('base64')]));
  return { apiVersion: 'v1', kind: 'Secret', metadata, type, data } satisfies V1Secret;
}
