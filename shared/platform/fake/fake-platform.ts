import type { Clock } from '#shared/clock.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';
import type { InProcessBuilds } from '#shared/platform/in-process-builds.ts';
import type { Metrics } from '#shared/platform/metrics.ts';
import type { Platform } from '#shared/platform/platform.ts';
import { createFakeRouter, type FakeRouter } from '../../routing/fake-router.ts';
import { createFakeAddons, type FakeAddons } from './addons.ts';
import { createFakeAppEnvironments, type FakeAppEnvironments } from './app-environments.ts';
import { createFakeAppLogs, type FakeAppLogs } from './app-logs.ts';
import { createFakeApps, type ProgramScript } from './app-workload.ts';
import { createFakeBuildCaches, type FakeBuildCaches } from './build-caches.ts';
import { createFakeBuilds, type FakeBuildStep } from './builds.ts';
import { createFakeCertificates, type FakeCertificates } from './certificates.ts';
import { createFakeDiskSpace, type FakeDiskSpace } from './disk-space.ts';
import { createFakeImages } from './images.ts';
import { createFakeUsageMetrics } from './metrics.ts';
import { createFakeRollouts, type FakeRollouts } from './rollouts.ts';
import { createFakeWorkloads, type FakeWorkloads } from './workloads.ts';

/** Every port as a fake, with what the fakes offer to tests. */
export interface FakePlatform extends Platform {
  readonly builds: InProcessBuilds;
  readonly caches: FakeBuildCaches;
  readonly logs: FakeAppLogs;
  readonly addons: FakeAddons;
  readonly appEnvironments: FakeAppEnvironments;
  readonly certificates: FakeCertificates;
  readonly workloads: FakeWorkloads;
  readonly rollouts: FakeRollouts;
  readonly router: FakeRouter;
  readonly diskSpace: FakeDiskSpace;
}

/** What a test decides. */
export interface FakePlatformOptions {
  clock: Clock;
  logs?: FakeAppLogs;
  buildStep?: FakeBuildStep;
  script?: ProgramScript;
  /** When not given: those of what runs. */
  metrics?: Metrics;
}

/** The whole platform in memory: nothing is built and nothing runs, but every fact is reported as a real platform does. */
export function createFakePlatform({
  clock,
  logs = createFakeAppLogs(clock),
  buildStep,
  script,
  metrics,
}: FakePlatformOptions): FakePlatform {
  const router = createFakeRouter();
  const images = createFakeImages();
  const apps = createFakeApps({ router, logs, clock, script });
  return {
    capabilities: { pipeline: 'memory', sandbox: true },
    builds: createFakeBuilds({ images, ...omitUndefined({ step: buildStep }) }),
    caches: createFakeBuildCaches(),
    images,
    logs,
    router,
    appEnvironments: createFakeAppEnvironments(),
    workloads: createFakeWorkloads(apps),
    metrics: metrics ?? createFakeUsageMetrics(apps),
    rollouts: createFakeRollouts(apps),
    addons: createFakeAddons(),
    certificates: createFakeCertificates(),
    diskSpace: createFakeDiskSpace(),
  };
}
