import type { AppId, ReleaseId } from '#shared/ids.ts';
import type { Rollouts } from '#shared/platform/rollouts.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';
import type { AppOperation, AppRegistry } from './app-registry.ts';
import { AppRollout, type AppRolloutOptions, takenOver } from './app-rollout.ts';
import type { AppWorkload } from './app-workload.ts';

/** What rollouts need. */
export interface LocalRolloutsOptions extends Pick<AppRolloutOptions, 'trafficPollMilliseconds'> {
  apps: AppRegistry;
  /** Newest lines an instance wrote. */
  readLastLines(appId: AppId, instanceKey: string): Promise<readonly string[]>;
}

/** The port, and what the driver itself does with it. */
export interface LocalRollouts extends Rollouts {
  /** Ends the rollout of an app that has been deleted. To be called by the operation that deletes it. */
  forgetRollout(appId: AppId): Promise<void>;
}

/** Rollouts of the apps that this process runs. */
export function createLocalRollouts(options: LocalRolloutsOptions): LocalRollouts {
  const { apps, readLastLines, trafficPollMilliseconds } = options;
  /** The newest rollout of each app, also when it is over. */
  const rollouts = new Map<AppId, AppRollout>();
  /** Orders that have not been carried out yet. */
  const ordered = new Set<string>();

  function newRollout(app: AppWorkload, spec: WorkloadSpec, weights: readonly number[]): AppRollout {
    return new AppRollout({
      app,
      spec,
      weights,
      trafficPollMilliseconds,
      readLastLines: ({ record }) => readLastLines(app.appId, record.key),
    });
  }

  async function findRollout(appId: AppId, releaseId: ReleaseId): Promise<AppRollout | undefined> {
    const known = rollouts.get(appId);
    if (known?.spec.releaseId === releaseId) return known;
    const app = await apps.find(appId);
    // Left by a process before, and not started again.
    return app?.candidate?.releaseId === releaseId ? newRollout(app, app.candidate, []) : undefined;
  }

  /** Begins an order and does not wait for it: what goes wrong is a fact of the rollout. */
  function begin(order: string, appId: AppId, operation: AppOperation<void>): void {
    if (ordered.has(order)) return;
    ordered.add(order);
    apps
      .run(appId, operation)
      // The platform is stopping, which the watch reports.
      .catch(() => undefined)
      .finally(() => ordered.delete(order));
  }

  return {
    async startRollout(spec, weights) {
      const { appId, releaseId } = spec;
      const rollout = newRollout(await apps.open(appId), spec, weights);
      const before = rollouts.get(appId);
      if (before?.isUnderWay === true && before.spec.releaseId === releaseId) return;
      before?.cancel();
      rollouts.set(appId, rollout);
      begin(`start ${releaseId}`, appId, async (_app, over) => {
        if (before?.isUnderWay === true) await before.abort(takenOver, over);
        await rollout.begin(over);
      });
    },

    async *watchRollout(appId, signal) {
      const rollout = rollouts.get(appId);
      if (rollout !== undefined) yield* rollout.watch(signal, apps.closing);
    },

    async advanceRollout(appId, releaseId, fromWeight) {
      const rollout = await findRollout(appId, releaseId);
      if (rollout !== undefined) await apps.run(appId, (_app, over) => rollout.advance(fromWeight, over));
    },

    async promoteRollout(appId, releaseId) {
      const rollout = await findRollout(appId, releaseId);
      if (rollout !== undefined) begin(`promote ${releaseId}`, appId, (_app, over) => rollout.promote(over));
    },

    async abortRollout(appId, releaseId, reason) {
      const rollout = await findRollout(appId, releaseId);
      if (rollout === undefined) return;
      rollout.cancel();
      begin(`abort ${releaseId}`, appId, (_app, over) => rollout.abort(reason, over));
    },

    async askRelease(appId, releaseId, whom) {
      const rollout = await findRollout(appId, releaseId);
      return rollout?.ask(whom, apps.closing);
    },

    async forgetRollout(appId) {
      await rollouts.get(appId)?.abort('The app was deleted.', apps.closing);
      rollouts.delete(appId);
    },
  };
}
