import { systemClock } from '#shared/clock.ts';
import { describeRollouts } from '#shared/platform/contract/rollouts.ts';
import { describeUsageMetrics, type UsageMetricsUnderTest } from '#shared/platform/contract/usage-metrics.ts';
import { describeWorkloads } from '#shared/platform/contract/workloads.ts';
import { visitRouter } from '#shared/platform/testing/visit-router.ts';
import { createFakeRouter } from '#shared/routing/fake-router.ts';
import { createFakeAppLogs } from './app-logs.ts';
import { createFakeApps, type ProgramScript } from './app-workload.ts';
import { createFakeUsageMetrics } from './metrics.ts';
import { createFakeRollouts } from './rollouts.ts';
import { createFakeWorkloads } from './workloads.ts';

const script: ProgramScript = {
  boot: (_image, { command }) => (command === 'fail' ? { exitCode: 4, output: ['no database'] } : undefined),
  async run(command, line, signal) {
    line('out');
    if (command === 'exit 9') return 9;
    await systemClock.sleep(60_000, signal);
    return 0;
  },
};

async function openFixture(): Promise<UsageMetricsUnderTest> {
  const router = createFakeRouter();
  const logs = createFakeAppLogs(systemClock);
  const apps = createFakeApps({ router, logs, clock: systemClock, script });
  const workloads = createFakeWorkloads(apps);
  const metrics = createFakeUsageMetrics(apps);
  return {
    workloads,
    rollouts: createFakeRollouts(apps),
    metrics,
    logs,
    ...visitRouter(router),
    image: 'any',
    commands: { serve: 'serve', work: 'work', fail: 'fail' },
    runs: { exits9: 'exit 9', hangs: 'hang' },
    crash: async (appId, name) => workloads.crash(appId, name),
    work: async (appId, name) => metrics.use(appId, name, { cpuSeconds: 0.3, memoryBytes: 30 * 1024 * 1024 }),
    stop: async () => undefined,
  };
}

describeWorkloads('fake', openFixture);
describeRollouts('fake', openFixture);
describeUsageMetrics('fake', openFixture);
