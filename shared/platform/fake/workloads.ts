import type { AppId } from '#shared/ids.ts';
import type { Workloads } from '#shared/platform/workloads.ts';
import { type FakeApps, openFakeApp } from './app-workload.ts';

export interface FakeWorkloads extends Workloads {
  /** The instance ends by itself, and is started again at once. */
  crash(appId: AppId, name: string): void;
  /** The instance works for so long more, and has so much in memory from now on. */
  use(appId: AppId, name: string, usage: { cpuSeconds: number; memoryBytes: number }): void;
}

/** What an instance uses that was never told to work. */
const idle = { cpuSeconds: 0, memoryBytes: 20 * 1024 * 1024 };

/** Workloads without processes. */
export function createFakeWorkloads(fake: FakeApps): FakeWorkloads {
  const { apps, router, logs, script } = fake;
  const used = new Map<string, { cpuSeconds: number; memoryBytes: number }>();
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
    async readUsage(appId) {
      const traffic = [...(await router.readPastTraffic(appId)), ...(await router.readTraffic(appId))];
      return {
        instances: apps.get(appId)?.instances.map(({ key, type }) => ({ run: key, type, ...idle, ...used.get(key) })) ?? [],
        traffic,
      };
    },
    use(appId, name, usage) {
      const instance = apps.get(appId)?.instances.find((candidate) => candidate.name === name);
      if (instance === undefined) return;
      const { cpuSeconds } = { ...idle, ...used.get(instance.key) };
      used.set(instance.key, { cpuSeconds: cpuSeconds + usage.cpuSeconds, memoryBytes: usage.memoryBytes });
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
