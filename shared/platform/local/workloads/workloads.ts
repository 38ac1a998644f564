import { join } from 'node:path';
import type { Clock } from '#shared/clock.ts';
import { limits } from '#shared/limits.ts';
import type { Log } from '#shared/log.ts';
import type { AppLogs } from '#shared/platform/app-logs.ts';
import type { UsageMetrics } from '#shared/platform/metrics.ts';
import type { Rollouts } from '#shared/platform/rollouts.ts';
import type { Workloads } from '#shared/platform/workloads.ts';
import type { Router } from '#shared/routing/router.ts';
import type { SecretBox } from '#shared/secret-box.ts';
import { createLocalAppLogs } from '../logs/app-logs.ts';
import { createOutputWriter } from '../logs/output/output-writer.ts';
import { createPortPool, readPortRange } from '../processes/port-pool.ts';
import { readProcessIdentity } from '../processes/process-identity.ts';
import { createAppRegistry } from './app-registry.ts';
import { AppWorkload } from './app-workload.ts';
import { createInstanceStore } from './instance-store.ts';
import { readInstanceUsage } from './instance-usage.ts';
import type { Programs } from './programs.ts';
import { ensureRelease, restartInstances } from './release-moves.ts';
import { createLocalRollouts } from './rollouts.ts';
import { type RunInputs, runAttachedProgram, writeRunInput } from './run-attached.ts';
import { runProgramOnce } from './run-once.ts';
import type { InstanceTimings } from './supervised-instance.ts';

/** What running apps on this machine needs. */
export interface LocalWorkloadsOptions {
  /** The directory `workloads/` is made in it. */
  dataDir: string;
  router: Router;
  programs: Programs;
  /** Seals the stored releases, which have the apps' variables in them. */
  secretBox: SecretBox;
  clock: Clock;
  log: Log;
  timings?: Partial<WorkloadTimings>;
}

/** How long things take, and how often they are looked at. */
export interface WorkloadTimings extends InstanceTimings {
  /** Longest time that an instance out of traffic may take to answer what it has begun. */
  drainSeconds: number;
  drainPollMilliseconds: number;
  /** How long a release that has served is still asked for assets of its pages that the next one does not have. */
  assetSeconds: number;
  /** How often traffic is read while two releases get some. */
  trafficPollMilliseconds: number;
}

/** The ports that have to do with running apps. */
export interface LocalWorkloads {
  readonly workloads: Workloads;
  readonly rollouts: Rollouts;
  readonly metrics: UsageMetrics;
  readonly logs: AppLogs;
  /**
   * Takes over what an earlier control plane left running: what has ended is removed from the routes, the rest is supervised
   * from now on. To be called once, before anything else.
   */
  adopt(): Promise<void>;
  /** Ends every instance of every app, all at the same time, by SIGTERM first. */
  stopAll(): Promise<void>;
  /** Leaves everything running for the next control plane. */
  detach(): Promise<void>;
}

const defaultTimings: WorkloadTimings = {
  bootSeconds: limits.app.bootSeconds,
  wrongPortSeconds: 3,
  stopSeconds: limits.app.stopSeconds,
  drainSeconds: limits.app.drainSeconds,
  memoryBytes: limits.app.memoryBytes,
  settleMilliseconds: 1000,
  stableSeconds: 60,
  healthPollMilliseconds: 50,
  alivePollMilliseconds: 500,
  drainPollMilliseconds: 50,
  assetSeconds: 2,
  trafficPollMilliseconds: 100,
};

/** Newest lines of an instance's output that are reported with an aborted rollout. */
const outputLines = 30;

/** Runs apps as processes of this machine, in `programs`, and routes visitors to them by `router`. */
export async function createLocalWorkloads(options: LocalWorkloadsOptions): Promise<LocalWorkloads> {
  const { dataDir, router, programs, secretBox, clock, log } = options;
  const timings = { ...defaultTimings, ...options.timings };
  const workloadsDir = join(dataDir, 'workloads');
  const writer = createOutputWriter(join(dataDir, 'output'), log);
  const logs = createLocalAppLogs({ workloadsDir, writer, clock, log });
  const ports = createPortPool(await readPortRange());
  const bootId = (await readProcessIdentity(process.pid))?.bootId ?? '';
  const apps = createAppRegistry(async (appId) => {
    const app = new AppWorkload(appId, {
      ...{ appId, programs, ports, clock, log, bootId, timings, router, secretBox },
      store: createInstanceStore(workloadsDir, appId),
      output: await logs.collectorOf(appId),
      directory: join(workloadsDir, appId),
      drainSeconds: timings.drainSeconds,
      drainPollMilliseconds: timings.drainPollMilliseconds,
      assetSeconds: timings.assetSeconds,
    });
    await app.load();
    return app;
  });

  const rollouts = createLocalRollouts({
    apps,
    readLastLines: (appId, instanceKey) => logs.readLastLines(appId, instanceKey, outputLines),
    trafficPollMilliseconds: timings.trafficPollMilliseconds,
  });

  const inputs: RunInputs = new Map();
  const runs = { programs, clock, stopSeconds: timings.stopSeconds, inputs };
  const workloads: Workloads = {
    ensureWorkload: (spec) => apps.run(spec.appId, (app, over) => ensureRelease(app, spec, over)),
    restartWorkload: (appId) => apps.run(appId, restartInstances),
    async deleteWorkload(appId) {
      if ((await apps.find(appId)) === undefined) return router.deleteRoute(appId);
      return apps.delete(appId, async (app) => {
        const hadInstances = app.instances.size > 0 || app.live !== undefined;
        const hadRoute = await app.stopAll('delete');
        await app.forget();
        await rollouts.forgetRollout(appId);
        return hadRoute || hadInstances;
      });
    },
    async readInstances(appId) {
      const app = await apps.find(appId);
      return [...(app?.instances ?? [])]
        .map(({ facts }) => facts)
        .sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }) || a.releaseVersion - b.releaseVersion);
    },
    runOnce: (run, line, signal) => runProgramOnce(runs, run, line, AbortSignal.any([signal, apps.closing])),
    runAttached: (run, signal) => runAttachedProgram(runs, run, AbortSignal.any([signal, apps.closing])),
    writeInput: (runId, bytes) => writeRunInput(runs.inputs, runId, bytes),
  };

  const metrics: UsageMetrics = {
    kind: 'usage',
    async readUsage(appId) {
      const app = await apps.find(appId);
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
      writer.warmUp();
      const found = await apps.openAll(workloadsDir);
      const known = new Set(found.map(({ appId }) => appId));
      // Ports of other apps' ended instances must be in no route before anything new may listen on them.
      for (const route of await router.listRoutes()) {
        if (known.has(route.appId)) continue;
        await router.applyRoute({ ...route, backends: route.backends.map((backend) => ({ ...backend, instances: [] })) });
      }
      await Promise.all(found.map((app) => app.syncRoute()));
      for (const app of found) app.begin();
    },
    async stopAll() {
      await apps.close((app) => app.stopAll('keep'));
      await logs.stop();
    },
    async detach() {
      await apps.close((app) => app.detach());
      await logs.close();
    },
  };
}
