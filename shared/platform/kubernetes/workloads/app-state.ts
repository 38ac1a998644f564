import type { V1ConfigMap } from '@kubernetes/client-node';
import { AppError } from '#shared/errors.ts';
import type { AppId, ReleaseId, TenantId } from '#shared/ids.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';
import type { Cluster, ClusterObject } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';
import { appLabels, appObjectName, tenantNamespace } from '../names.ts';

/** What the objects of an app do not say by themselves: which release is which. In a ConfigMap, so that any process takes over. */
export interface AppState {
  tenantId: TenantId;
  /** The release that serves, or served last. */
  live?: ReleaseReference;
  /** The release that is rolled out. */
  candidate?: Candidate;
  /** How the newest rollout has ended. */
  ended?: EndedRollout;
}

export interface ReleaseReference {
  releaseId: ReleaseId;
  releaseVersion: number;
}

/** A rollout that is under way. */
export interface Candidate extends ReleaseReference {
  /** Names of the Deployments of its process types without traffic. */
  others: readonly string[];
  /** Of its traffic, step by step; left out without a process type 'web'. */
  weights?: readonly number[];
  /** What core has decided; until then the rollout goes on step by step. */
  order?: { action: 'promote' } | { action: 'abort'; cause: string; output: readonly string[] };
}

export interface EndedRollout extends ReleaseReference {
  phase: 'live' | 'aborted';
  cause?: string;
  output?: readonly string[];
}

/** The state, and the version of the object it is in: a change of an older one is refused. */
export interface StoredState {
  state: AppState;
  namespace: string;
  resourceVersion: string;
}

const stateLabels = (appId: AppId): Record<string, string> => ({ ...appLabels(appId), 'paas-state': 'workload' });

/** Undefined for an app that has never run here. */
export async function readAppState(cluster: Cluster, appId: AppId): Promise<StoredState | undefined> {
  const [found] = await cluster.list({ kind: kinds.configMap, labels: stateLabels(appId) });
  if (found === undefined || found.metadata.deletionTimestamp !== undefined) return undefined;
  const { namespace = '', resourceVersion = '' } = found.metadata;
  return { state: JSON.parse(found.data?.['state'] ?? '{}') as AppState, namespace, resourceVersion };
}

/** The state of the app; an empty one is created when there is none. */
export async function ensureAppState(cluster: Cluster, { appId, tenantId }: WorkloadSpec): Promise<StoredState> {
  for (;;) {
    const stored = await readAppState(cluster, appId);
    if (stored !== undefined) return stored;
    await cluster.create(planState(appId, { tenantId }));
  }
}

/** Replaces the state that was read. Undefined when somebody else has changed it since then: it must be read again. */
export async function writeAppState(
  cluster: Cluster,
  appId: AppId,
  { namespace, resourceVersion }: StoredState,
  state: AppState,
): Promise<StoredState | undefined> {
  const { metadata, data } = planState(appId, state);
  try {
    const written = await cluster.patch(
      { kind: kinds.configMap, name: metadata.name, namespace },
      { metadata: { resourceVersion }, data },
    );
    return written === undefined ? undefined : { state, namespace, resourceVersion: written.metadata.resourceVersion ?? '' };
  } catch (error) {
    if (error instanceof AppError && error.code === 'conflict') return undefined;
    throw error;
  }
}

function planState(appId: AppId, state: AppState): ClusterObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: `${appObjectName(appId)}-state`, namespace: tenantNamespace(state.tenantId), labels: stateLabels(appId) },
    data: { state: JSON.stringify(state) },
  } satisfies V1ConfigMap;
}
