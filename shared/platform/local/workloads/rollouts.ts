import type { AppId, ReleaseId } from '#shared/ids.ts';
import type { Rollouts } from '#shared/platform/rollouts.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';
import { AppRollout, type AppRolloutOptions, takenOver } from './app-rollout.ts';
import type { AppWorkload } from './app-workload.ts';

export interface LocalRolloutsOptions extends Pick<AppRolloutOptions, 'trafficPollMilliseconds'> {
  /** Runs one piece of work on an app at a time; `over` aborts when the app is deleted or the platform lets go of it. */
  runInSlot(appId: AppId, work: (app: AppWorkload, over: AbortSignal) => Promise<void>): Promise<void>;
  openApp(appId: AppId): Promise<AppWorkload>;
  /** Undefined for an app that this platform has never run. */
  findApp(appId: AppId): Promise<AppWorkload | undefined>;
  readLastLines(appId: AppId, instanceKey: string): Promise<readonly string[]>;
  /** Aborted when the platform lets go of its apps. */
  left: AbortSignal;
}

export interface LocalRollouts extends Rollouts {
  /** Ends the rollout of an app that has been deleted. To be called in the app's slot. */
  forgetRollout(appId: AppId): Promise<void>;
}

export function createLocalRollouts(options: LocalRolloutsOptions): LocalRollouts {
  const { runInSlot, openApp, findApp, readLastLines, left, trafficPollMilliseconds } = options;
  /** The newest of each app, also when it is over. */
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
    const app = await findApp(appId);
    // Left behind by a process before, and not taken up again.
    return app?.candidate?.releaseId === releaseId ? newRollout(app, app.candidate, []) : undefined;
  }

  /** Begins an order and does not wait for it: what goes wrong is a fact of the rollout. */
  function begin(order: string, appId: AppId, work: (app: AppWorkload, over: AbortSignal) => Promise<void>): void {
    if (ordered.has(order)) return;
    ordered.add(order);
    runInSlot(appId, work)
      // The platform lets go of its apps, which the watch reports.
      .catch(() => undefined)
      .finally(() => ordered.delete(order));
  }

  return {
    async startRollout(spec, weights) {
      const { appId, releaseId } = spec;
      const rollout = newRollout(await openApp(appId), spec, weights);
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
      if (rollout !== undefined) yield* rollout.watch(signal, left);
    },

    async advanceRollout(appId, releaseId, fromWeight) {
      const rollout = await findRollout(appId, releaseId);
      if (rollout !== undefined) await runInSlot(appId, (_app, over) => rollout.advance(fromWeight, over));
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

    async forgetRollout(appId) {
      await rollouts.get(appId)?.abort('The app was deleted.', left);
      rollouts.delete(appId);
    },
  };
}
