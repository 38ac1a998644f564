import type { AppId } from '#shared/ids.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';
import type { Cluster, ClusterObject } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';
import { appLabels, appObjectName, processLabels, tenantNamespace } from '../names.ts';
import {
  planDeployment,
  planReleaseSecrets,
  planRollout,
  planRoute,
  planRouteChange,
  processName,
  releaseRecordName,
  releaseSecretName,
  type WorkloadSettings,
  webType,
} from './workload-plan.ts';

const defaultWeights = [10, 25, 50, 100];

/** Puts releases of apps on the cluster. */
export class ReleaseObjects {
  readonly #cluster: Cluster;
  readonly #settings: WorkloadSettings;

  constructor(cluster: Cluster, settings: WorkloadSettings) {
    this.#cluster = cluster;
    this.#settings = settings;
  }

  /** What pods of the release read when they start. */
  async applySecrets(spec: WorkloadSpec): Promise<void> {
    for (const secret of planReleaseSecrets(spec)) await this.#cluster.apply(secret);
  }

  /**
   * The process type 'web': the hosts, then the template, then the Rollout that follows it. Without that type nothing is
   * applied, and what there was of it goes.
   * @param weights undefined: those of a Rollout that exists are kept
   */
  async applyWeb(spec: WorkloadSpec, weights?: readonly number[]): Promise<void> {
    const web = spec.processes.find(({ type }) => type === webType);
    const place = { name: appObjectName(spec.appId), namespace: tenantNamespace(spec.tenantId) };
    if (web === undefined) {
      for (const kind of [kinds.rollout, kinds.httpRoute, kinds.deployment]) await this.#cluster.delete({ kind, ...place });
      return;
    }
    const known = weights ?? readWeights(await this.#cluster.read({ kind: kinds.rollout, ...place }));
    // The route first, since the Rollout writes its weights into it.
    const route = planRoute(spec, this.#settings);
    if ((await this.#cluster.create(route)) === 'existed') {
      const reference = { kind: kinds.httpRoute, ...place };
      const found = await this.#cluster.read(reference);
      if (found !== undefined) await this.#cluster.patch(reference, { spec: planRouteChange(route, found) });
    }
    await this.#cluster.apply(planDeployment(spec, web, this.#settings));
    await this.#cluster.apply(planRollout(spec, web.quantity, known));
  }

  /** All other process types; those that the release does not have go. */
  async applyOthers(spec: WorkloadSpec): Promise<void> {
    const others = spec.processes.filter(({ type }) => type !== webType);
    for (const process of others) await this.#cluster.apply(planDeployment(spec, process, this.#settings));
    const names = new Set([appObjectName(spec.appId), ...others.map(({ type }) => processName(spec.appId, type))]);
    const namespace = tenantNamespace(spec.tenantId);
    const labels = { ...appLabels(spec.appId), ...processLabels };
    for (const { metadata } of await this.#cluster.list({ kind: kinds.deployment, namespace, labels }))
      if (!names.has(metadata.name)) await this.#cluster.delete({ kind: kinds.deployment, name: metadata.name, namespace });
  }

  /** The release as it was applied; undefined when it is not kept any more. */
  async readRelease(appId: AppId, namespace: string, releaseVersion: number): Promise<WorkloadSpec | undefined> {
    const name = releaseRecordName(appId, releaseVersion);
    const record = await this.#cluster.read({ kind: kinds.secret, name, namespace });
    const text = record?.data?.['spec'];
    return text === undefined ? undefined : (JSON.parse(Buffer.from(text, 'base64').toString()) as WorkloadSpec);
  }

  /** Removes the Secrets of a release that does not run any more. */
  async deleteSecrets(appId: AppId, namespace: string, releaseVersion: number): Promise<void> {
    for (const name of [releaseSecretName(appId, releaseVersion), releaseRecordName(appId, releaseVersion)])
      await this.#cluster.delete({ kind: kinds.secret, name, namespace });
  }

  /** Everything that runs, and what leads to it. False when there was nothing. */
  async deleteAll(appId: AppId, namespace: string): Promise<boolean> {
    const labels = { ...appLabels(appId), ...processLabels };
    const place = { name: appObjectName(appId), namespace };
    const deployments = await this.#cluster.list({ kind: kinds.deployment, namespace, labels });
    const results = [
      await this.#cluster.delete({ kind: kinds.rollout, ...place }),
      await this.#cluster.delete({ kind: kinds.httpRoute, ...place }),
    ];
    for (const { metadata } of deployments)
      results.push(await this.#cluster.delete({ kind: kinds.deployment, name: metadata.name, namespace }));
    // The pods of commands that have ended would count as pods of the app for as long as their Jobs are kept.
    for (const { metadata } of await this.#cluster.list({ kind: kinds.job, namespace, labels: appLabels(appId) }))
      results.push(await this.#cluster.delete({ kind: kinds.job, name: metadata.name, namespace }));
    return results.includes(true);
  }
}

function readWeights(rollout: ClusterObject | undefined): readonly number[] {
  const { strategy } = (rollout?.spec ?? {}) as { strategy?: { canary?: { steps?: readonly { setWeight?: number }[] } } };
  const weights = (strategy?.canary?.steps ?? []).flatMap(({ setWeight }) => setWeight ?? []);
  return weights.length === 0 ? defaultWeights : weights;
}
