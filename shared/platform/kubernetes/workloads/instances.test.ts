import { expect, it } from 'vitest';
import type { ClusterObject } from '../cluster/cluster.ts';
import { listInstances } from './instances.ts';

const pod = (
  name: string,
  created: string,
  change: { type?: string; version?: number; deleted?: boolean; container?: object } = {},
): ClusterObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name,
    namespace: 'tenant-a',
    labels: { 'process-type': change.type ?? 'web', 'release-version': String(change.version ?? 1) },
    creationTimestamp: created,
    ...(change.deleted === true ? { deletionTimestamp: created } : {}),
  },
  status: {
    containerStatuses: [change.container ?? { ready: true, restartCount: 0, state: { running: { startedAt: created } } }],
  },
});

it('numbers the instances of each type and release by age, those that stop last', () => {
  const instances = listInstances([
    pod('c', '2026-11-22T10:00:03Z'),
    pod('a', '2026-11-22T10:00:01Z', { deleted: true }),
    pod('b', '2026-11-22T10:00:02Z'),
    pod('w', '2026-11-22T10:00:00Z', { type: 'worker' }),
    pod('n', '2026-11-22T10:00:09Z', { version: 2 }),
  ]);
  expect(instances.map(({ name, releaseVersion, podName, state }) => [name, releaseVersion, podName, state])).toEqual([
    ['web.1', 1, 'b', 'up'],
    ['web.1', 2, 'n', 'up'],
    ['web.2', 1, 'c', 'up'],
    ['web.3', 1, 'a', 'stopping'],
    ['worker.1', 1, 'w', 'up'],
  ]);
});

it.each([
  [
    'web',
    { restartCount: 2, state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: { terminated: { exitCode: 4 } } },
    'web.1 exited with code 4 before it listened on PORT',
  ],
  ['worker', { state: { terminated: { exitCode: 1 } } }, 'worker.1 exited with code 1'],
  ['web', { state: { waiting: { reason: 'ImagePullBackOff' } } }, 'web.1 cannot start: its image cannot be pulled'],
])('says why an instance of %s does not run', (type, container, crash) => {
  expect(listInstances([pod('a', '2026-11-22T10:00:00Z', { type, container })])).toMatchObject([{ state: 'crashed', crash }]);
});

it('lists no pod of a command that is run once', () => {
  const run = pod('run', '2026-11-22T10:00:00Z', { type: 'release' });
  const labels = { ...run.metadata.labels, 'job-name': 'run-1' };
  expect(listInstances([{ ...run, metadata: { ...run.metadata, labels } }])).toEqual([]);
});
