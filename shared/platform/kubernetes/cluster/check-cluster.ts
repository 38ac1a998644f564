import { buildNamespace } from '#shared/names.ts';
import type { Cluster } from './cluster.ts';
import { isPartOfKubernetes, type Kind, kinds } from './kinds.ts';
import { describeRefusal } from './refusals.ts';

/** A right that the platform needs. */
export interface NeededRight {
  verb: string;
  kind: Kind;
  subresource?: string;
  /** Left out: all objects. */
  name?: string;
  /** Left out: in the whole cluster. */
  namespace?: string;
}

/** Where the platform needs rights beside those in the whole cluster. */
export interface NeededPlaces {
  /** Its own namespace. */
  platform: string;
  /** That of the Gateway. */
  gateway: string;
  /** The ClusterRole that it binds to itself in each tenant's namespace; undefined: it needs Secrets in the whole cluster. */
  secretsRole: string | undefined;
}

const all = ['get', 'list', 'watch', 'create', 'patch', 'delete'];
const rights = (kind: Kind, verbs: readonly string[], place: Pick<NeededRight, 'namespace'> = {}): NeededRight[] =>
  verbs.map((verb) => ({ verb, kind, ...place }));

/** As the chart's roles give them (`deploy/chart/templates/rights.yaml`). Secrets of tenants are bound with each namespace. */
export function neededRights({ platform, gateway, secretsRole }: NeededPlaces): NeededRight[] {
  const builds = { namespace: buildNamespace };
  return [
    ...[kinds.namespace, kinds.service, kinds.configMap, kinds.deployment, kinds.networkPolicy].flatMap((kind) =>
      rights(kind, all),
    ),
    ...[kinds.rollout, kinds.httpRoute, kinds.postgresCluster].flatMap((kind) => rights(kind, all)),
    ...[kinds.resourceQuota, kinds.limitRange, kinds.roleBinding].flatMap((kind) =>
      rights(kind, ['list', 'watch', 'create', 'patch']),
    ),
    ...rights(kinds.persistentVolumeClaim, ['get', 'list', 'create', 'delete']),
    ...rights(kinds.job, ['get', 'list', 'create', 'delete']),
    ...rights(kinds.pod, ['list']),
    { verb: 'get', kind: kinds.pod, subresource: 'log' },
    { verb: 'patch', kind: kinds.rollout, subresource: 'status' },
    ...[kinds.certificate, kinds.listenerSet].flatMap((kind) => [
      ...rights(kind, ['list', 'watch']),
      ...rights(kind, ['get', 'create', 'patch', 'delete'], { namespace: gateway }),
    ]),
    ...rights(kinds.secret, ['get', 'delete'], { namespace: gateway }),
    ...rights(kinds.lease, ['get', 'create', 'patch'], { namespace: platform }),
    ...rights(kinds.pipelineRun, ['get', 'list', 'delete']),
    ...rights(kinds.pipelineRun, ['create', 'patch', 'watch'], builds),
    ...rights(kinds.taskRun, ['get', 'list'], builds),
    ...rights(kinds.pod, ['watch'], builds),
    ...rights(kinds.secret, ['get', 'create'], builds),
    ...(secretsRole === undefined ? rights(kinds.secret, all) : [{ verb: 'bind', kind: kinds.clusterRole, name: secretsRole }]),
  ];
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
  needed: readonly NeededRight[],
): Promise<readonly string[]> {
  const problems: string[] = [];
  const missing = new Set<Kind>();
  const served = new Map<Kind, Promise<boolean>>();
  const serves = (kind: Kind): Promise<boolean> => {
    const known = served.get(kind) ?? cluster.serves(kind);
    served.set(kind, known);
    return known;
  };
  for (const kind of requiredKinds) {
    if (await serves(kind)) continue;
    missing.add(kind);
    problems.push(describeRefusal({ verb: 'list', kind }, 404, {}));
  }
  for (const right of needed) {
    // Who may what with a kind that does not exist is no question.
    if (!missing.has(right.kind) && !isPartOfKubernetes(right.kind) && !(await serves(right.kind))) missing.add(right.kind);
    if (missing.has(right.kind) || (await cluster.isAllowed(right))) continue;
    problems.push(describeRefusal(right, 403, { message: ' cannot use resource ' }));
  }
  return problems;
}
