import { expect, it } from 'vitest';
import { newUuid } from '#shared/ids.ts';
import { describeAppLogs } from '#shared/platform/contract/app-logs.ts';
import { startFakeLoki } from '../testing/fake-loki.ts';
import { openLogsUnderTest } from '../testing/logs-under-test.ts';
import { connectLoki } from './loki.ts';

describeAppLogs('kubernetes, with an HTTP server that answers as Loki does', async () => {
  const loki = await startFakeLoki();
  return openLogsUnderTest({ url: loki.url, tenant: 'paas' }, () => loki.stop());
});

it('names an instance that is gone by the end of its pod’s name', async () => {
  const server = await startFakeLoki();
  const { logs } = openLogsUnderTest({ url: server.url, tenant: undefined }, () => server.stop());
  const appId = newUuid<Parameters<typeof logs.readLogs>[0]>();
  const labels = { app_id: appId, process: 'web', release: '3', pod: `app-${appId}-7d9f-x2x4z`, stream: 'stderr' };
  await connectLoki({ url: server.url, tenant: undefined }).push([
    { time: BigInt(Date.now()) * 1_000_000n, labels, line: 'bye' },
  ]);
  expect(await logs.readLogs(appId, { lines: 1 })).toMatchObject([
    { process: 'web.x2x4z', stream: 'stderr', releaseVersion: 3, message: 'bye' },
  ]);
  await server.stop();
});

it('says that Loki does not answer, and that nothing is lost by that', async () => {
  const loki = connectLoki({ url: 'http://127.0.0.1:1', tenant: undefined });
  await expect(loki.delete({ app_id: 'x' })).rejects.toThrow('Loki at http://127.0.0.1:1 does not answer. Logs are not lost');
});
