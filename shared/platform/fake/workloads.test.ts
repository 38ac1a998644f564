import { systemClock } from '#shared/clock.ts';
import { describeWorkloads } from '#shared/platform/contract/workloads.ts';
import { createFakeRouter } from '../../routing/fake-router.ts';
import { createFakeAppLogs } from './app-logs.ts';
import { createFakeWorkloads } from './workloads.ts';

describeWorkloads('memory', async () => {
  const router = createFakeRouter();
  const logs = createFakeAppLogs(systemClock);
  const workloads = createFakeWorkloads({
    router,
    logs,
    clock: systemClock,
    script: {
      boot: (_image, { command }) => (command === 'fail' ? { exitCode: 4, output: ['no database'] } : undefined),
      async run(command, line, signal) {
        line('out');
        if (command === 'exit 9') return 9;
        await systemClock.sleep(60_000, signal);
        return 0;
      },
    },
  });
  return {
    workloads,
    logs,
    router,
    image: 'any',
    commands: { serve: 'serve', work: 'work', fail: 'fail' },
    runs: { exits9: 'exit 9', hangs: 'hang' },
    crash: async (appId, name) => workloads.crash(appId, name),
    work: async (appId, name) => workloads.use(appId, name, { cpuSeconds: 0.3, memoryBytes: 30 * 1024 * 1024 }),
    stop: async () => undefined,
  };
});
