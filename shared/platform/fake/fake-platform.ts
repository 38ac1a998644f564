import type { Clock } from '#shared/clock.ts';
import type { InProcessBuilds } from '#shared/platform/in-process-builds.ts';
import type { Platform } from '#shared/platform/platform.ts';
import { createFakeRouter, type FakeRouter } from '../../routing/fake-router.ts';
import { createFakeAddons, type FakeAddons } from './addons.ts';
import { createFakeAppLogs, type FakeAppLogs } from './app-logs.ts';
import { createFakeBuildCaches } from './build-caches.ts';
import { createFakeBuilds, type FakeBuildStep } from './builds.ts';
import { createFakeImages } from './images.ts';
import { createFakeWorkloads, type FakeWorkloads, type ProgramScript } from './workloads.ts';

export interface FakePlatform extends Platform {
  readonly builds: InProcessBuilds;
  readonly logs: FakeAppLogs;
  readonly addons: FakeAddons;
  readonly workloads: FakeWorkloads;
  readonly router: FakeRouter;
}

export interface FakePlatformOptions {
  clock: Clock;
  logs?: FakeAppLogs;
  buildStep?: FakeBuildStep;
  script?: ProgramScript;
}

/** The whole ground in memory: nothing is built and nothing runs, but every fact about it is as the real grounds tell it. */
export function createFakePlatform({
  clock,
  logs = createFakeAppLogs(clock),
  buildStep,
  script,
}: FakePlatformOptions): FakePlatform {
  const router = createFakeRouter();
  const images = createFakeImages();
  return {
    capabilities: { pipeline: 'memory', sandbox: true },
    builds: createFakeBuilds({ images, ...(buildStep === undefined ? {} : { step: buildStep }) }),
    caches: createFakeBuildCaches(),
    images,
    logs,
    router,
    workloads: createFakeWorkloads({ router, logs, clock, ...(script === undefined ? {} : { script }) }),
    addons: createFakeAddons(),
    certificates: { readCertificate: (host) => router.readCertificate(host) },
  };
}
