import type { AppId } from '#shared/ids.ts';
import type { AppLogs } from '#shared/platform/app-logs.ts';
import type { Rollouts } from '#shared/platform/rollouts.ts';
import type { Workloads } from '#shared/platform/workloads.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { ReleaseObjects } from './apply-release.ts';
import { type RolloutTraffic, unknownTraffic } from './rollout-facts.ts';
import { createKubernetesRollouts } from './rollouts.ts';
import type { WorkloadSettings } from './workload-plan.ts';
import { createKubernetesWorkloads } from './workloads.ts';

/** The two ports that share an app's objects. */
export interface WorkloadDrivers {
  workloads: Workloads;
  rollouts: Rollouts;
}

/** Dependencies of {@link createWorkloadDrivers}. */
export interface WorkloadDriversOptions {
  cluster: Cluster;
  settings: WorkloadSettings;
  logs: Pick<AppLogs, 'appendPlatformLog'>;
  /** Requests to the releases of an app; undefined where nothing counts them: core then passes each step by its time. */
  readTraffic?: ((appId: AppId) => Promise<RolloutTraffic>) | undefined;
}

/** Workloads and rollouts. */
export function createWorkloadDrivers({ cluster, settings, logs, readTraffic }: WorkloadDriversOptions): WorkloadDrivers {
  const objects = new ReleaseObjects(cluster, settings);
  const rollouts = createKubernetesRollouts({
    cluster,
    objects,
    readTraffic: readTraffic ?? (async () => unknownTraffic),
  });
  return { rollouts, workloads: createKubernetesWorkloads({ cluster, objects, rollouts, settings, logs }) };
}
