import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '#shared/errors.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';
import { refusal } from '../cluster/refusals.ts';
import { createFakeCluster, type FakeCluster } from '../testing/fake-cluster.ts';
import { awaitLeadership, type Leadership } from './await-leadership.ts';

const place = { namespace: 'paas', name: 'worker' };
/** A deadline that a busy machine keeps. */
const times = { durationSeconds: 3, deadlineSeconds: 2, renewSeconds: 0.2, lookSeconds: 0.1 };

describe('leadership by a lease', () => {
  let cluster: FakeCluster;
  const leaders: Leadership[] = [];
  /** Who has led, in order. */
  const led: string[] = [];
  let over: AbortController;
  beforeEach(() => {
    over = new AbortController();
    cluster = createFakeCluster();
    led.length = 0;
  });
  afterEach(async () => {
    over.abort();
    for (const leader of leaders.splice(0)) await leader.release();
  });
  function contend(holder: string, through: Cluster = cluster): Promise<Leadership> {
    const contending = awaitLeadership({ cluster: through, holder, times, ...place }, over.signal).then((leadership) => {
      led.push(holder);
      leaders.push(leadership);
      return leadership;
    });
    contending.catch(() => undefined);
    return contending;
  }
  /** Times of renewals, as they come. */
  function renewalsOf(from: FakeCluster): Set<unknown> {
    const seen = new Set<unknown>();
    void (async () => {
      for await (const { object } of from.watch({ kind: kinds.lease }, over.signal))
        seen.add((object.spec as { renewTime?: string }).renewTime);
    })();
    return seen;
  }
  /** An API server that one of them does not reach any more. */
  function breakable(): { through: Cluster; cut(isCut: boolean): void; readonly refused: number } {
    let isCut = false;
    let refused = 0;
    const guard = async <Result>(answer: () => Promise<Result>): Promise<Result> => {
      refused += Number(isCut);
      if (isCut) throw new AppError('internal', 'does not answer');
      return answer();
    };
    return {
      through: {
        ...cluster,
        read: (reference) => guard(() => cluster.read(reference)),
        patch: (...change) => guard(() => cluster.patch(...change)),
      },
      cut: (value) => void (isCut = value),
      get refused() {
        return refused;
      },
    };
  }

  it('is one process, however many contend at the same time', async () => {
    for (const holder of ['a', 'b', 'c']) void contend(holder);
    await expect.poll(() => led).toHaveLength(1);
    const renewals = renewalsOf(cluster);
    await expect.poll(() => renewals.size, { timeout: 20_000 }).toBeGreaterThan(3);
    expect(led).toHaveLength(1);
    expect(leaders[0]?.lost.aborted).toBe(false);
  });

  it('passes on when it is released, and when the leader is cut off, which stops before the next one begins', async () => {
    const first = await contend('a');
    const second = breakable();
    void contend('b', second.through);
    await first.release();
    await expect.poll(() => led, { timeout: 10_000 }).toEqual(['a', 'b']);

    void contend('c');
    second.cut(true);
    leaders[1]?.lost.addEventListener('abort', () => led.push('b has stopped'));
    await expect.poll(() => led, { timeout: 20_000 }).toEqual(['a', 'b', 'b has stopped', 'c']);
  });

  it('is lost for a process that was stopped for longer than its lease lasts', async () => {
    const first = await contend('a');
    await cluster.patch({ kind: kinds.lease, ...place }, { spec: { holderIdentity: 'b', renewTime: 'later' } });
    await expect.poll(() => first.lost.aborted, { timeout: 10_000 }).toBe(true);
  });

  it('waits until the API server answers', async () => {
    const broken = breakable();
    broken.cut(true);
    void contend('a', broken.through);
    await expect.poll(() => broken.refused, { timeout: 10_000 }).toBeGreaterThan(3);
    expect(led).toEqual([]);
    broken.cut(false);
    await expect.poll(() => led, { timeout: 10_000 }).toEqual(['a']);
  });

  it('says at once what the API server refuses', async () => {
    const refused = refusal({ verb: 'get', kind: kinds.lease, ...place }, 403, { message: 'x cannot get resource "leases"' });
    const through: Cluster = { ...cluster, read: () => Promise.reject(refused) };
    await expect(contend('a', through)).rejects.toThrow('the verb `get` on `leases` (coordination.k8s.io)');
  });
});
