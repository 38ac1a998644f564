import type { AppId } from '#shared/ids.ts';
import type { Workloads } from '#shared/platform/workloads.ts';
import { type FakeApps, openFakeApp } from './app-workload.ts';

/** Workloads that a test can let crash. */
export interface FakeWorkloads extends Workloads {
  /** The instance ends by itself, and is started again at once. */
  crash(appId: AppId, name: string): void;
}

/** Workloads without processes. */
export function createFakeWorkloads(fake: FakeApps): FakeWorkloads {
  const { apps, router, logs, script } = fake;
  return {
    async ensureWorkload(spec) {
      const app = openFakeApp(fake, spec.appId);
      if (app.candidate?.releaseVersion !== spec.releaseVersion) await app.discardCandidate();
      const failure = app.startMissing(spec);
      if (failure === undefined || app.live === undefined || app.live.releaseVersion === spec.releaseVersion)
        await app.makeLive(spec);
      else await app.discardCandidate();
    },
    async restartWorkload(appId) {
      await apps.get(appId)?.restart();
    },
    async deleteWorkload(appId) {
      const app = apps.get(appId);
      const routed = await router.deleteRoute(appId);
      apps.delete(appId);
      if (app !== undefined) [app.live, app.candidate] = [undefined, undefined];
      return app !== undefined || routed;
    },
    async readInstances(appId) {
      return (apps.get(appId)?.instances ?? [])
        .map(({ key: _key, ...facts }) => facts)
        .sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }) || a.releaseVersion - b.releaseVersion);
    },
    async runOnce({ command }, line, signal) {
      signal.throwIfAborted();
      return (await script.run?.(command, line, signal)) ?? 0;
    },
    crash(appId, name) {
      apps.get(appId)?.crash(name);
      void logs.appendPlatformLog(appId, `${name} exited with code 3, restarting in 1 s`);
    },
  };
}
