import type { Cluster, ClusterObject } from './cluster/cluster.ts';
import { kindOf } from './cluster/kinds.ts';
import { releaseHashLabel } from './names.ts';

interface ServiceSpec {
  type?: string;
  selector?: Readonly<Record<string, string>>;
  ports?: readonly { name?: string; port: number; targetPort?: number | string; protocol?: string }[];
}

/**
 * Creates a Service whose selector a controller may extend, or puts back what somebody has changed of it. The label by which Argo
 * Rollouts chooses the release stays: a Service that is applied would lead to both releases for a moment.
 */
export async function ensureService(cluster: Cluster, service: ClusterObject): Promise<void> {
  if ((await cluster.create(service)) === 'created') return;
  const { apiVersion, kind, metadata } = service;
  const reference = { kind: kindOf({ apiVersion, kind }), name: metadata.name, namespace: metadata.namespace ?? '' };
  const found = await cluster.read(reference);
  // Deleted in this moment: the deletion is drift, and this runs again.
  if (found === undefined) return;
  const change = planServiceRepair(service, found);
  if (change !== undefined) await cluster.patch(reference, change);
}

/** The merge patch that makes `found` what `wanted` says; undefined when it is that already. */
export function planServiceRepair(wanted: ClusterObject, found: ClusterObject): object | undefined {
  const spec = wanted.spec as ServiceSpec;
  const current = found.spec as ServiceSpec;
  const selector = repairMap(spec.selector ?? {}, current.selector ?? {}, [releaseHashLabel]);
  const labels = repairMap(wanted.metadata.labels ?? {}, found.metadata.labels ?? {}, Object.keys(found.metadata.labels ?? {}));
  const hasPorts = JSON.stringify(current.ports?.map(plainPort)) === JSON.stringify(spec.ports?.map(plainPort));
  const isInternal = (current.type ?? 'ClusterIP') === 'ClusterIP';
  if (selector === undefined && labels === undefined && hasPorts && isInternal) return undefined;
  return {
    ...(labels === undefined ? {} : { metadata: { labels } }),
    spec: { type: 'ClusterIP', ports: spec.ports, ...(selector === undefined ? {} : { selector }) },
  };
}

/** What a merge patch must say; undefined when there is nothing to change. Names of `others` are left as they are. */
function repairMap(
  wanted: Readonly<Record<string, string>>,
  found: Readonly<Record<string, string>>,
  others: readonly string[],
): Record<string, string | null> | undefined {
  const missing = Object.entries(wanted).filter(([name, value]) => found[name] !== value);
  const superfluous = Object.keys(found).filter((name) => !(name in wanted) && !others.includes(name));
  if (missing.length === 0 && superfluous.length === 0) return undefined;
  return { ...Object.fromEntries(missing), ...Object.fromEntries(superfluous.map((name) => [name, null])) };
}

const plainPort = ({ name, port, targetPort = port, protocol = 'TCP' }: NonNullable<ServiceSpec['ports']>[number]) => [
  name,
  port,
  targetPort,
  protocol,
];
