import { describe, expect, it } from 'vitest';
import { AppError } from '#shared/errors.ts';
import { type AppId, newUuid } from '#shared/ids.ts';
import { describeAppLogs } from '#shared/platform/contract/app-logs.ts';
import type { Cluster, ClusterObject } from '../cluster/cluster.ts';
import { parseTimedLine } from '../cluster/pod-log-requests.ts';
import { appLabels, processLabels } from '../names.ts';
import { createFakeCluster } from '../testing/fake-cluster.ts';
import { openPodLogsUnderTest } from '../testing/pod-logs-under-test.ts';
import { createPodLogStore } from './pod-log-store.ts';

describeAppLogs('kubernetes, with the logs of pods', async () => {
  const cluster = createFakeCluster();
  return openPodLogsUnderTest({
    cluster,
    start: async (pod) => void (await cluster.create(pod)),
    print: async (pod, lines) => {
      for (const line of lines) cluster.printPodLog(pod, line);
    },
    stop: async () => undefined,
  });
});

describe('the logs of pods', () => {
  const appId = newUuid<AppId>();
  const podOf = (name: string, status: object = {}): ClusterObject => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'tenant-a',
      labels: { ...appLabels(appId), ...processLabels, 'process-type': 'web', 'release-version': '1' },
    },
    status,
  });
  const query = { labels: { app_id: appId }, from: 0n, to: 10n ** 19n, limit: 10, direction: 'backward' } as const;

  it('begin with what the container printed that crashed', async () => {
    const cluster = createFakeCluster();
    await cluster.create(podOf('web', { containerStatuses: [{ restartCount: 2 }] }));
    const crashing: Cluster = {
      ...cluster,
      async *readTimedLog(_, { previous }) {
        yield previous ? { time: 1n, line: 'crash' } : { time: 2n, line: 'again' };
      },
    };
    const entries = await createPodLogStore(crashing).query(query);
    expect(entries.map(({ line }) => line)).toEqual(['crash', 'again']);
  });

  it('of one node that does not answer are left out, and of none are an error', async () => {
    const cluster = createFakeCluster();
    const unreachable = new Set(['gone']);
    for (const name of ['gone', 'there']) await cluster.create(podOf(name));
    cluster.printPodLog({ namespace: 'tenant-a', name: 'there', container: 'process' }, 'hello');
    const broken: Cluster = {
      ...cluster,
      async *readTimedLog(pod, range) {
        if (unreachable.has(pod.name)) throw new AppError('internal', 'The kubelet does not answer.');
        yield* cluster.readTimedLog(pod, range);
      },
    };
    expect((await createPodLogStore(broken).query(query)).map(({ line }) => line)).toEqual(['hello']);
    unreachable.add('there');
    await expect(createPodLogStore(broken).query(query)).rejects.toThrow('The kubelet does not answer.');
  });
});

it.each([
  ['2026-11-22T16:00:00.123456789Z hello', 1_795_363_200_123_456_789n, 'hello'],
  ['2026-11-22T17:00:00.5+01:00 a b', 1_795_363_200_500_000_000n, 'a b'],
  ['2026-11-22T16:00:00Z ', 1_795_363_200_000_000_000n, ''],
])('reads the time of a line: %s', (text, time, line) => {
  expect(parseTimedLine(text)).toEqual({ time, line });
});

it('takes nothing for a line that has no time', () => {
  expect(parseTimedLine('unable to retrieve container logs')).toBeUndefined();
});
