import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '#shared/clock.ts';
import { AppError } from '#shared/errors.ts';
import { ifMissing } from '#shared/files/if-missing.ts';
import { type AppId, isUuid } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';
import type { Log } from '#shared/log.ts';
import type { AppLogs } from '#shared/platform/app-logs.ts';
import type { UsageMetrics } from '#shared/platform/metrics.ts';
import type { Rollouts } from '#shared/platform/rollouts.ts';
import type { Workloads } from '#shared/platform/workloads.ts';
import type { Router } from '#shared/routing/router.ts';
import type { SecretBox } from '#shared/secret-box.ts';
import { createKeyedMutex } from '../../../keyed-mutex.ts';
import { createLocalAppLogs } from '../logs/app-logs.ts';
import { createPortPool, readPortRange } from '../processes/port-pool.ts';
import { readProcessIdentity } from '../processes/process-identity.ts';
import { AppWorkload } from './app-workload.ts';
import { readInstanceUsage } from './instance-usage.ts';
import { createInstanceStore } from './instances.ts';
import type { Programs } from './programs.ts';
import { ensureRelease, restartInstances } from './release-moves.ts';
import { createLocalRollouts } from './rollouts.ts';
import { runProgramOnce } from './run-once.ts';
import type { InstanceTimings } from './supervised-instance.ts';

export interface LocalWorkloadsOptions {
  /** Holds `workloads/`. */
  dataDir: string;
  router: Router;
  programs: Programs;
  /** Seals the specs of what runs: they hold the apps' variables. */
  secretBox: SecretBox;
  clock: Clock;
  log: Log;
  timings?: Partial<WorkloadTimings>;
}

export interface WorkloadTimings extends InstanceTimings {
  drainSeconds: number;
  drainPollMilliseconds: number;
  trafficPollMilliseconds: number;
}

export interface LocalWorkloads {
  readonly workloads: Workloads;
  readonly rollouts: Rollouts;
  readonly metrics: UsageMetrics;
  readonly logs: AppLogs;
  /**
   * Finds again what an earlier control plane left running, takes out of the routes what is gone, and supervises all of
   * it from now on. Once, before anything else is asked.
   */
  adopt(): Promise<void>;
  /** Ends every instance of every app, politely, all at once. */
  stopAll(): Promise<void>;
  /** Lets go of everything and leaves it running. */
  detach(): Promise<void>;
}

const defaultTimings: WorkloadTimings = {
  bootSeconds: limits.app.bootSeconds,
  stopSeconds: limits.app.stopSeconds,
  drainSeconds: limits.app.drainSeconds,
  memoryBytes: limits.app.memoryBytes,
  settleMilliseconds: 1000,
  stableSeconds: 60,
  healthPollMilliseconds: 50,
  alivePollMilliseconds: 500,
  drainPollMilliseconds: 50,
  trafficPollMilliseconds: 100,
};

/** Lines of output that go with a failed rollout. */
const outputLines = 30;

export async function createLocalWorkloads(options: LocalWorkloadsOptions): Promise<LocalWorkloads> {
  const { dataDir, router, programs, secretBox, clock, log } = options;
  const timings = { ...defaultTimings, ...options.timings };
  const workloadsDir = join(dataDir, 'workloads');
  const logs = createLocalAppLogs({ workloadsDir, clock, log });
  const ports = createPortPool(await readPortRange());
  const bootId = (await readProcessIdentity(process.pid))?.bootId ?? '';
  const apps = new Map<AppId, Promise<AppWorkload>>();
  const mutex = createKeyedMutex<AppId>();
  /** Aborted when the app is deleted: what is under way for it is given up. */
  const deletions = new Map<AppId, AbortController>();
  const left = new AbortController();

  function appOf(appId: AppId): Promise<AppWorkload> {
    const known = apps.get(appId);
    if (known !== undefined) return known;
    const opening = openApp(appId);
    apps.set(appId, opening);
    opening.catch(() => apps.delete(appId));
    return opening;
  }

  async function openApp(appId: AppId): Promise<AppWorkload> {
    const app = new AppWorkload(appId, {
      programs, ports, clock, log, bootId, timings, router, secretBox,
      store: createInstanceStore(workloadsDir, appId),
      output: await logs.collectorOf(appId),
      directory: join(workloadsDir, appId),
      drainSeconds: timings.drainSeconds,
      drainPollMilliseconds: timings.drainPollMilliseconds,
    }); // biome-ignore format: what is handed on, then what is made
    await app.load();
    return app;
  }

  /** One operation an app at a time. `over` aborts when the app is deleted or the platform lets go of it. */
  function runInSlot<T>(appId: AppId, work: (app: AppWorkload, over: AbortSignal) => Promise<T>): Promise<T> {
    return mutex.run(appId, async () => {
      refuseWhenLeft();
      return work(await appOf(appId), AbortSignal.any([left.signal, deletionOf(appId)]));
    });
  }

  function deletionOf(appId: AppId): AbortSignal {
    const controller = deletions.get(appId) ?? new AbortController();
    deletions.set(appId, controller);
    return controller.signal;
  }

  function refuseWhenLeft(): void {
    if (left.signal.aborted) throw new AppError('internal', 'The platform is stopping.');
  }

  const rollouts = createLocalRollouts({
    runInSlot,
    async openApp(appId) {
      refuseWhenLeft();
      return appOf(appId);
    },
    findApp: async (appId) => apps.get(appId),
    readLastLines: (appId, instanceKey) => logs.readLastLines(appId, instanceKey, outputLines),
    left: left.signal,
    trafficPollMilliseconds: timings.trafficPollMilliseconds,
  });

  const workloads: Workloads = {
    ensureWorkload: (spec) => runInSlot(spec.appId, (app, over) => ensureRelease(app, spec, over)),
    restartWorkload: (appId) => runInSlot(appId, restartInstances),
    async deleteWorkload(appId) {
      if (!apps.has(appId)) return router.deleteRoute(appId);
      deletions.get(appId)?.abort();
      deletions.delete(appId);
      return runInSlot(appId, async (app) => {
        const ran = app.instances.size > 0 || app.live !== undefined;
        const routed = await app.stopAll('delete');
        await app.forget();
        await rollouts.forgetRollout(appId);
        apps.delete(appId);
        return routed || ran;
      });
    },
    async readInstances(appId) {
      const app = await apps.get(appId);
      return [...(app?.instances ?? [])]
        .map(
          (instance) =>
            ({
              name: instance.name,
              type: instance.record.type,
              state: instance.record.state === 'new' ? 'starting' : instance.record.state,
              releaseVersion: instance.record.releaseVersion,
              startedAt: new Date(instance.record.startedAt),
              restarts: instance.record.restarts,
            }) as const,
        )
        .sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }) || a.releaseVersion - b.releaseVersion);
    },
    runOnce: (run, line, signal) =>
      runProgramOnce({ programs, clock, stopSeconds: timings.stopSeconds }, run, line, AbortSignal.any([signal, left.signal])),
  };

  const metrics: UsageMetrics = {
    kind: 'usage',
    async readUsage(appId) {
      const app = await apps.get(appId);
      const [instances, past, present] = await Promise.all([
        Promise.all([...(app?.instances ?? [])].map((instance) => readInstanceUsage(programs, instance.record))),
        router.readPastTraffic(appId),
        router.readTraffic(appId),
      ]);
      return { instances: instances.filter((usage) => usage !== undefined), traffic: [...past, ...present] };
    },
  };

  return {
    workloads,
    rollouts,
    metrics,
    logs,
    async adopt() {
      const names = await readdir(workloadsDir).catch(ifMissing([]));
      const found = await Promise.all(names.filter(isUuid).map((name) => appOf(name as AppId)));
      // Ports of other apps' dead instances must be out of every route before anything new may listen on them.
      for (const route of await router.listRoutes()) {
        if (apps.has(route.appId)) continue;
        await router.applyRoute({ ...route, backends: route.backends.map((backend) => ({ ...backend, instances: [] })) });
      }
      await Promise.all(found.map((app) => app.syncRoute()));
      for (const app of found) app.begin();
    },
    async stopAll() {
      left.abort();
      await Promise.all([...apps.values()].map(async (app) => (await app).stopAll('keep')));
      await logs.close();
    },
    async detach() {
      left.abort();
      await Promise.all([...apps.values()].map(async (app) => (await app).detach()));
      await logs.close();
    },
  };
}
