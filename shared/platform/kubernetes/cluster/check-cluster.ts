import type { Cluster } from './cluster.ts';
import { type Kind, kinds } from './kinds.ts';
import { describeRefusal } from './refusals.ts';

/** A right that the platform needs. */
export interface NeededRight {
  verb: string;
  kind: Kind;
  subresource?: string;
  /** Left out: in the whole cluster. */
  namespace?: string;
}

const all = ['get', 'list', 'watch', 'create', 'patch', 'delete'] as const;
const right =
  (kind: Kind, ...verbs: readonly string[]) =>
  (namespace?: string): NeededRight[] =>
    verbs.map((verb) => ({ verb, kind, ...(namespace === undefined ? {} : { namespace }) }));

/** As the chart's roles give them (`deploy/chart/templates/rights.yaml`). Secrets of tenants are bound with each namespace. */
export function neededRights(places: { platform: string; gateway: string }): NeededRight[] {
  return [
    ...[kinds.namespace, kinds.service, kinds.configMap, kinds.deployment, kinds.networkPolicy].map((kind) =>
      right(kind, ...all),
    ),
    ...[kinds.rollout, kinds.httpRoute].map((kind) => right(kind, ...all)),
    ...[kinds.resourceQuota, kinds.limitRange, kinds.roleBinding].map((kind) => right(kind, 'list', 'watch', 'create', 'patch')),
    right(kinds.persistentVolumeClaim, 'get', 'list', 'create', 'delete'),
    right(kinds.job, 'get', 'list', 'create', 'delete'),
    right(kinds.pod, 'list'),
    right(kinds.certificate, 'list', 'watch'),
    right(kinds.listenerSet, 'list', 'watch'),
  ]
    .flatMap((rights) => rights())
    .concat(
      { verb: 'get', kind: kinds.pod, subresource: 'log' },
      { verb: 'patch', kind: kinds.rollout, subresource: 'status' },
      ...[kinds.certificate, kinds.listenerSet].flatMap((kind) =>
        right(kind, 'get', 'create', 'patch', 'delete')(places.gateway),
      ),
      ...right(kinds.secret, 'get', 'delete')(places.gateway),
      ...right(kinds.lease, 'get', 'create', 'patch')(places.platform),
    );
}

/** Without these nothing of an app runs; databases may do without their operator. */
const requiredKinds: readonly Kind[] = [kinds.rollout, kinds.httpRoute, kinds.listenerSet, kinds.certificate, kinds.pipelineRun];

/**
 * What is in the way before the platform starts: definitions that are not installed, and rights that its account lacks. One sentence each, with
 * what to do.
 * @throws AppError when the API server does not answer, or does not accept the credentials
 */
export async function checkCluster(
  cluster: Pick<Cluster, 'serves' | 'isAllowed'>,
  rights: readonly NeededRight[],
): Promise<readonly string[]> {
  const problems: string[] = [];
  const missing = new Set<Kind>();
  for (const kind of requiredKinds) {
    if (await cluster.serves(kind)) continue;
    missing.add(kind);
    problems.push(describeRefusal({ verb: 'list', kind }, 404, {}));
  }
  for (const needed of rights) {
    // Who may what with a kind that does not exist is no question.
    if (missing.has(needed.kind) || (await cluster.isAllowed(needed))) continue;
    problems.push(describeRefusal(needed, 403, { message: ' cannot use resource ' }));
  }
  return problems;
}
