/** A kind of object, as the API server's paths name it. */
export interface Kind {
  apiVersion: string;
  kind: string;
  plural: string;
  namespaced: boolean;
  /** What installs its definition, for kinds that are not part of Kubernetes. */
  from?: string;
}

const builtIn = (apiVersion: string, kind: string, plural: string, namespaced = true): Kind => ({
  apiVersion,
  kind,
  plural,
  namespaced,
});

/** All kinds that the driver uses. */
export const kinds = {
  namespace: builtIn('v1', 'Namespace', 'namespaces', false),
  secret: builtIn('v1', 'Secret', 'secrets'),
  configMap: builtIn('v1', 'ConfigMap', 'configmaps'),
  service: builtIn('v1', 'Service', 'services'),
  pod: builtIn('v1', 'Pod', 'pods'),
  resourceQuota: builtIn('v1', 'ResourceQuota', 'resourcequotas'),
  limitRange: builtIn('v1', 'LimitRange', 'limitranges'),
  persistentVolumeClaim: builtIn('v1', 'PersistentVolumeClaim', 'persistentvolumeclaims'),
  deployment: builtIn('apps/v1', 'Deployment', 'deployments'),
  job: builtIn('batch/v1', 'Job', 'jobs'),
  lease: builtIn('coordination.k8s.io/v1', 'Lease', 'leases'),
  clusterRole: builtIn('rbac.authorization.k8s.io/v1', 'ClusterRole', 'clusterroles', false),
  roleBinding: builtIn('rbac.authorization.k8s.io/v1', 'RoleBinding', 'rolebindings'),
  networkPolicy: builtIn('networking.k8s.io/v1', 'NetworkPolicy', 'networkpolicies'),
  rollout: { ...builtIn('argoproj.io/v1alpha1', 'Rollout', 'rollouts'), from: 'Argo Rollouts' },
  httpRoute: { ...builtIn('gateway.networking.k8s.io/v1', 'HTTPRoute', 'httproutes'), from: 'Gateway API 1.5 or later' },
  listenerSet: { ...builtIn('gateway.networking.k8s.io/v1', 'ListenerSet', 'listenersets'), from: 'Gateway API 1.5 or later' },
  certificate: { ...builtIn('cert-manager.io/v1', 'Certificate', 'certificates'), from: 'cert-manager' },
  pipelineRun: { ...builtIn('tekton.dev/v1', 'PipelineRun', 'pipelineruns'), from: 'Tekton Pipelines' },
  taskRun: { ...builtIn('tekton.dev/v1', 'TaskRun', 'taskruns'), from: 'Tekton Pipelines' },
  postgresCluster: { ...builtIn('postgresql.cnpg.io/v1', 'Cluster', 'clusters'), from: 'CloudNativePG' },
} as const satisfies Record<string, Kind>;

const byName = new Map<string, Kind>(Object.values(kinds).map((kind) => [`${kind.apiVersion}/${kind.kind}`, kind]));

/**
 * The kind of an object.
 * @throws Error for one that `kinds` does not list: the fault is in the driver
 */
export function kindOf({ apiVersion, kind }: { apiVersion: string; kind: string }): Kind {
  const known = byName.get(`${apiVersion}/${kind}`);
  if (known === undefined) throw new Error(`The driver does not know the kind ${apiVersion}/${kind}.`);
  return known;
}

/** Whether every cluster has the kind. */
export const isPartOfKubernetes = ({ from }: Kind): boolean => from === undefined;

/** The API group and version of a kind: `apps` and `v1`; the core group is ''. */
export function apiGroup({ apiVersion }: Pick<Kind, 'apiVersion'>): { group: string; version: string } {
  const [group = '', version] = apiVersion.split('/');
  return version === undefined ? { group: '', version: group } : { group, version };
}

/** A kind as kubectl takes it: `pods`, `deployments.apps`. */
export function resourceName(kind: Kind): string {
  const { group } = apiGroup(kind);
  return group === '' ? kind.plural : `${kind.plural}.${group}`;
}
