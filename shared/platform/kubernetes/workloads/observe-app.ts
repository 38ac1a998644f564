import type { AppId } from '#shared/ids.ts';
import type { Cluster, ClusterObject } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';
import { appLabels, appObjectName, processLabels } from '../names.ts';
import { readAppState, type StoredState } from './app-state.ts';
import { webType } from './workload-plan.ts';

/** An app as it is on the cluster at one moment. */
export interface AppObservation extends StoredState {
  rollout: ClusterObject | undefined;
  /** Without it no visitor reaches the app. */
  route: ClusterObject | undefined;
  /** Of all process types; that of 'web' has no pods of its own. */
  deployments: readonly ClusterObject[];
  pods: readonly ClusterObject[];
}

/** Undefined for an app that has never run here. */
export async function observeApp(cluster: Cluster, appId: AppId): Promise<AppObservation | undefined> {
  const stored = await readAppState(cluster, appId);
  if (stored === undefined) return undefined;
  const { namespace } = stored;
  const labels = { ...appLabels(appId), ...processLabels };
  const place = { name: appObjectName(appId), namespace };
  const [rollout, route, deployments, pods] = await Promise.all([
    cluster.read({ kind: kinds.rollout, ...place }),
    cluster.read({ kind: kinds.httpRoute, ...place }),
    cluster.list({ kind: kinds.deployment, namespace, labels }),
    cluster.list({ kind: kinds.pod, namespace, labels }),
  ]);
  return { ...stored, rollout, route, deployments, pods };
}

/** The Deployments of the process types other than 'web'. */
export function otherDeployments({ deployments }: AppObservation): readonly ClusterObject[] {
  return deployments.filter(({ metadata }) => metadata.labels?.['process-type'] !== webType);
}

/** What the controller of Argo Rollouts says. */
export interface RolloutStatus {
  phase?: string;
  observedGeneration?: string;
  workloadObservedGeneration?: string;
  currentPodHash?: string;
  stableRS?: string;
  currentStepIndex?: number;
  pauseConditions?: readonly object[];
  abort?: boolean;
  restartedAt?: string;
  availableReplicas?: number;
  canary?: { weights?: { canary: { weight: number } } };
}

/** Undefined until the controller has seen the newest Rollout and the newest template. */
export function currentStatus({ rollout, deployments }: AppObservation, appId: AppId): RolloutStatus | undefined {
  const web = deployments.find(({ metadata }) => metadata.name === appObjectName(appId));
  const status = rollout?.status as RolloutStatus | undefined;
  if (status === undefined || web === undefined) return undefined;
  const isCurrent =
    status.observedGeneration === String(rollout?.metadata.generation) &&
    status.workloadObservedGeneration === String(web.metadata.generation);
  return isCurrent ? status : undefined;
}

/** Whether an object of the process type 'web' has been deleted; a release without that type has none. */
export const isWebMissing = ({ rollout, route, deployments }: AppObservation, appId: AppId): boolean =>
  rollout === undefined ||
  route === undefined ||
  !deployments.some(
    ({ metadata: { name, deletionTimestamp } }) => name === appObjectName(appId) && deletionTimestamp === undefined,
  );

/** Whether the release of the newest template has all traffic and the older one is no longer needed. */
export const isPromoted = (status: RolloutStatus | undefined): boolean =>
  status?.phase === 'Healthy' && status.currentPodHash !== undefined && status.currentPodHash === status.stableRS;

/** Whether all instances of a Deployment are of its newest template and available. */
export function isDeployed({ metadata, spec, status }: ClusterObject): boolean {
  const { replicas = 1 } = spec as { replicas?: number };
  const {
    observedGeneration,
    updatedReplicas = 0,
    availableReplicas = 0,
    replicas: all = 0,
  } = (status ?? {}) as {
    observedGeneration?: number;
    updatedReplicas?: number;
    availableReplicas?: number;
    replicas?: number;
  };
  return (
    observedGeneration === metadata.generation &&
    updatedReplicas === replicas &&
    availableReplicas === replicas &&
    all === replicas
  );
}
