import { describe } from 'vitest';
import { describeAppLogs } from '#shared/platform/contract/app-logs.ts';
import { openLogsUnderTest } from '#shared/platform/kubernetes/testing/logs-under-test.ts';
import { startLoki } from './cluster/start-loki.ts';

/** Built in test/kubernetes/loki, which takes eight minutes; without it only `npm test` runs the suite, on a server that answers as Loki does. */
const program = process.env['PAAS_TEST_LOKI'];

describe.skipIf(program === undefined)('with PAAS_TEST_LOKI, the path of Loki', () => {
  describeAppLogs('kubernetes, with Loki', async () => {
    const loki = await startLoki(program ?? '');
    // Its queriers know new requests for deletion after five minutes.
    return { ...openLogsUnderTest({ url: loki.url, tenant: 'paas' }, () => loki.stop()), deletesLater: true };
  });
});
