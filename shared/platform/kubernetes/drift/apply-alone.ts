import { fieldManager } from '../cluster/api-server.ts';
import type { Cluster, ClusterObject, ManagedFields } from '../cluster/cluster.ts';
import { kindOf } from '../cluster/kinds.ts';

/** Kinds whose contents are the platform's alone: an apply would keep a variable, a container or a key that somebody has added. */
const exclusiveKinds = new Set(['Secret', 'ConfigMap', 'ResourceQuota', 'LimitRange', 'NetworkPolicy', 'Deployment', 'Rollout']);
/** They write into objects of the platform by design. */
const controllers = new Set(['kube-controller-manager', 'rollouts-controller']);
const contents = ['f:spec', 'f:data', 'f:stringData', 'f:binaryData'] as const;

/**
 * Applies an object, and removes what others have added to it: the platform takes over their fields, and a second apply, which does
 * not name them, removes these.
 */
export async function applyAlone(cluster: Cluster, object: ClusterObject): Promise<ClusterObject> {
  const applied = await cluster.apply(object);
  const managedFields = takeOver(applied);
  if (managedFields === undefined) return applied;
  const { apiVersion, kind, metadata } = applied;
  const { name, namespace, resourceVersion } = metadata;
  const reference = { kind: kindOf({ apiVersion, kind }), name, ...(namespace === undefined ? {} : { namespace }) };
  await cluster.patch(reference, { metadata: { resourceVersion, managedFields } });
  return cluster.apply(object);
}

/** The managed fields with those of others as the platform's own; undefined when nobody else has added any. */
export function takeOver({ kind, metadata }: ClusterObject): ManagedFields[] | undefined {
  const { managedFields = [] } = metadata;
  if (!exclusiveKinds.has(kind)) return undefined;
  const own = managedFields.find(({ manager, operation }) => manager === fieldManager && operation === 'Apply');
  const foreign = managedFields.filter(
    ({ manager = '', subresource = '', fieldsV1 = {} }) =>
      manager !== fieldManager &&
      !controllers.has(manager) &&
      subresource !== 'status' &&
      contents.some((key) => key in fieldsV1),
  );
  if (own === undefined || foreign.length === 0) return undefined;
  let fieldsV1 = own.fieldsV1 ?? {};
  for (const { fieldsV1: theirs = {} } of foreign)
    for (const key of contents) if (key in theirs) fieldsV1 = union(fieldsV1, { [key]: theirs[key] ?? {} });
  const others = managedFields.filter((entry) => entry !== own && !foreign.includes(entry));
  return [{ ...own, fieldsV1 }, ...others];
}

type Fields = NonNullable<ManagedFields['fieldsV1']>;

function union(one: Fields, other: Fields): Fields {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return Object.fromEntries([...names].map((name) => [name, union(one[name] ?? {}, other[name] ?? {})]));
}
