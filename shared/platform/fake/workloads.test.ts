import { systemClock } from '#shared/clock.ts';
import { describeRollouts } from '#shared/platform/contract/rollouts.ts';
import { describeWorkloads } from '#shared/platform/contract/workloads.ts';
import { visitRouter } from '#shared/platform/testing/visit-router.ts';
import type { WorkloadsUnderTest } from '#shared/platform/testing/workloads-under-test.ts';
import type { ProgramScript } from './app-workload.ts';
import { createFakePlatform } from './fake-platform.ts';

const script: ProgramScript = {
  boot: (_image, { command }) => (command === 'fail' ? { exitCode: 4, output: ['no database'] } : undefined),
  async run(command, line, signal) {
    line('out');
    if (command === 'exit 9') return 9;
    await systemClock.sleep(60_000, signal);
    return 0;
  },
};

async function openFixture(): Promise<WorkloadsUnderTest> {
  const { workloads, rollouts, logs, router } = createFakePlatform({ clock: systemClock, script });
  return {
    workloads,
    rollouts,
    logs,
    ...visitRouter(router),
    image: 'any',
    commands: { serve: 'serve', work: 'work', fail: 'fail' },
    runs: { exits9: 'exit 9', hangs: 'hang' },
    crash: async (appId, name) => workloads.crash(appId, name),
    work: async (appId, name) => workloads.use(appId, name, { cpuSeconds: 0.3, memoryBytes: 30 * 1024 * 1024 }),
    stop: async () => undefined,
  };
}

describeWorkloads('fake', openFixture);
describeRollouts('fake', openFixture);
