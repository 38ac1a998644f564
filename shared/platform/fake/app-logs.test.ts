import { systemClock } from '#shared/clock.ts';
import { describeAppLogs } from '#shared/platform/contract/app-logs.ts';
import { createFakeAppLogs } from './app-logs.ts';

describeAppLogs('fake', async () => {
  const logs = createFakeAppLogs(systemClock);
  return {
    logs,
    print: async (appId, process, releaseVersion, lines) => {
      for (const message of lines) logs.write(appId, { process, releaseVersion, message });
    },
    stop: async () => undefined,
  };
});
