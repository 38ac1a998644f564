import { AppError } from '#shared/errors.ts';
import type { AppLogs } from '#shared/platform/app-logs.ts';
import { followRun } from '#shared/platform/followed-run.ts';
import type { Workloads } from '#shared/platform/workloads.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';
import { pollUntil } from '../cluster/pause.ts';
import { appLabels, appObjectName, processLabels, tenantNamespace } from '../names.ts';
import { ensureAppState, readAppState, writeAppState } from './app-state.ts';
import type { ReleaseObjects } from './apply-release.ts';
import { listInstances } from './instances.ts';
import { currentStatus, isDeployed, isPromoted, observeApp, otherDeployments, type RolloutStatus } from './observe-app.ts';
import type { KubernetesRollouts } from './rollouts.ts';
import { runJob } from './run-job.ts';
import { type WorkloadSettings, webType } from './workload-plan.ts';

/** What workloads need. */
export interface WorkloadOptions {
  cluster: Cluster;
  objects: ReleaseObjects;
  rollouts: Pick<KubernetesRollouts, 'abortOthers'>;
  settings: WorkloadSettings;
  logs: Pick<AppLogs, 'appendPlatformLog'>;
}

const patienceSeconds = 600;
/** Longer than the grace that pods have. */
const stopSeconds = 120;

/** Releases of apps, as Deployments that a Rollout refers to. */
export function createKubernetesWorkloads({ cluster, objects, rollouts, settings, logs }: WorkloadOptions): Workloads {
  return {
    async ensureWorkload(spec) {
      const { appId, releaseId, releaseVersion } = spec;
      await rollouts.abortOthers(appId, releaseId, 'The release that serves was changed.');
      const before = (await ensureAppState(cluster, spec)).state.live;
      await objects.applySecrets(spec);
      await objects.applyWeb(spec);
      await objects.applyOthers(spec);
      for (;;) {
        const stored = await ensureAppState(cluster, spec);
        const { candidate: _, ...state } = stored.state;
        if ((await writeAppState(cluster, appId, stored, { ...state, live: { releaseId, releaseVersion } })) !== undefined) break;
      }
      const hasWeb = spec.processes.some(({ type }) => type === webType);
      await pollUntil(async () => {
        const app = await observeApp(cluster, appId);
        if (app === undefined) return true;
        const status = currentStatus(app, appId);
        const reference = { kind: kinds.rollout, name: appObjectName(appId), namespace: app.namespace };
        // Another release than before, without its steps.
        if (hasWeb && status !== undefined && status.phase !== 'Healthy' && before?.releaseId !== releaseId)
          await cluster.patch(reference, { status: { promoteFull: true } }, 'status');
        const others = otherDeployments(app);
        if ((!hasWeb || isPromoted(status)) && others.every(isDeployed)) return true;
        return listInstances(app.pods).some(
          (instance) => instance.releaseVersion === releaseVersion && instance.crash !== undefined,
        );
      }, patienceSeconds);
      if (before !== undefined && before.releaseVersion !== releaseVersion)
        await objects.deleteSecrets(appId, tenantNamespace(spec.tenantId), before.releaseVersion);
    },

    async restartWorkload(appId) {
      const app = await observeApp(cluster, appId);
      if (app === undefined) return;
      // Times of objects have whole seconds. At the next one, so that pods of this second are old, too.
      const now = new Date((Math.floor(Date.now() / 1000) + 1) * 1000).toISOString().replace('.000Z', 'Z');
      const { namespace } = app;
      if (app.rollout !== undefined)
        await cluster.patch({ kind: kinds.rollout, name: appObjectName(appId), namespace }, { spec: { restartAt: now } });
      // An annotation in the template of 'web' would start a canary.
      for (const { metadata } of otherDeployments(app)) {
        const template = { metadata: { annotations: { 'paas/restarted-at': now } } };
        await cluster.patch({ kind: kinds.deployment, name: metadata.name, namespace }, { spec: { template } });
      }
      const isOver = await pollUntil(async () => {
        const current = await observeApp(cluster, appId);
        if (current === undefined) return true;
        const status = current.rollout?.status as RolloutStatus | undefined;
        const others = otherDeployments(current);
        const areOld = current.pods.some(({ metadata }) => (metadata.creationTimestamp ?? '') < now);
        const isWebReady = current.rollout === undefined || (status?.restartedAt === now && isPromoted(status));
        return !areOld && isWebReady && others.every(isDeployed);
      }, patienceSeconds);
      if (!isOver) throw new AppError('internal', `The app was not restarted within ${patienceSeconds / 60} minutes.`);
    },

    async deleteWorkload(appId) {
      const stored = await readAppState(cluster, appId);
      if (stored === undefined) return false;
      const { namespace, state } = stored;
      await objects.deleteAll(appId, namespace);
      for (const release of [state.live, state.candidate])
        if (release !== undefined) await objects.deleteSecrets(appId, namespace, release.releaseVersion);
      await pollUntil(async () => (await observeApp(cluster, appId))?.pods.length === 0, stopSeconds);
      return cluster.delete({ kind: kinds.configMap, name: `${appObjectName(appId)}-state`, namespace });
    },

    async readInstances(appId) {
      const pods = await cluster.list({
        kind: kinds.pod,
        labels: { ...appLabels(appId), ...processLabels },
      });
      return listInstances(pods).map(({ name, type, state, releaseVersion, startedAt, restarts }) => ({
        name,
        type,
        state,
        releaseVersion,
        startedAt,
        restarts,
      }));
    },

    async runOnce(run, line, signal) {
      await objects.applySecrets(run.spec);
      const code = await runJob({ cluster, settings }, run, line, signal);
      await logs.appendPlatformLog(run.spec.appId, `run exited with code ${code}`);
      return code;
    },
    async *runAttached(run, signal) {
      if (run.input || run.terminal !== undefined)
        throw new AppError(
          'validation_failed',
          'This platform cannot give a command an input. Use `paas run --no-tty --no-input`.',
        );
      await objects.applySecrets(run.spec);
      yield* followRun((line, end) => runJob({ cluster, settings }, run, line, end), signal);
    },

    writeInput: () => Promise.resolve(false),
  };
}
