import type { Clock } from '#shared/clock.ts';
import type { Platform } from '#shared/platform/platform.ts';
import { createMemoryRouter, type MemoryRouter } from '../../routing/fake-router.ts';
import { createMemoryAddons, type MemoryAddons } from './addons.ts';
import { createMemoryAppLogs, type MemoryAppLogs } from './app-logs.ts';
import { createMemoryBuilds, type MemoryBuildStep } from './builds.ts';
import { createMemoryWorkloads, type MemoryWorkloads, type ProgramScript } from './workloads.ts';

export interface MemoryPlatform extends Platform {
  readonly logs: MemoryAppLogs;
  readonly addons: MemoryAddons;
  readonly workloads: MemoryWorkloads;
  readonly router: MemoryRouter;
}

export interface MemoryPlatformOptions {
  clock: Clock;
  logs?: MemoryAppLogs;
  buildStep?: MemoryBuildStep;
  script?: ProgramScript;
}

/** The whole ground in memory: nothing is built and nothing runs, but every fact about it is as the real grounds tell it. */
export function createMemoryPlatform({
  clock,
  logs = createMemoryAppLogs(clock),
  buildStep,
  script,
}: MemoryPlatformOptions): MemoryPlatform {
  const router = createMemoryRouter();
  return {
    capabilities: { pipeline: 'memory', sandbox: true },
    ...createMemoryBuilds(buildStep),
    logs,
    router,
    workloads: createMemoryWorkloads({ router, logs, clock, ...(script === undefined ? {} : { script }) }),
    addons: createMemoryAddons(),
    certificates: { readCertificate: (host) => router.readCertificate(host) },
  };
}
