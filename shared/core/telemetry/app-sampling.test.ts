import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { createAppMetrics } from '#shared/core/telemetry/app-metrics-service.ts';
import { runSampling, type SamplingContext, sampleApps, sweepSamples } from '#shared/core/telemetry/app-sampling.ts';
import { secondsPerDay, secondsPerHour, secondsPerMinute } from '#shared/durations.ts';
import { type AppId, newTenantId, newUuid, type ReleaseId, type RepositoryId, type TenantId, type UserId } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import { createFakeAppLogs } from '#shared/platform/fake/app-logs.ts';
import { createFakeApps } from '#shared/platform/fake/app-workload.ts';
import { createFakeUsageMetrics, type FakeUsageMetrics } from '#shared/platform/fake/metrics.ts';
import { createFakeWorkloads, type FakeWorkloads } from '#shared/platform/fake/workloads.ts';
import type { MetricKind } from '#shared/platform/metrics.ts';
import { createFakeRouter, type FakeRouter } from '#shared/routing/fake-router.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/database/test-database.ts';
import { TestClock } from '#test/support/test-clock.ts';

describe('sampling of apps', () => {
  let database: TestDatabase;
  let tenantId: TenantId;
  beforeAll(async () => {
    database = await createTestDatabase();
    tenantId = newTenantId();
    await database.db.insertInto('tenants').values({ id: tenantId, name: 'Ada' }).execute();
  });
  afterAll(() => database.close());

  let clock: TestClock;
  let router: FakeRouter;
  let workloads: FakeWorkloads;
  let metrics: FakeUsageMetrics;
  let context: SamplingContext;
  let appId: AppId;
  beforeEach(async () => {
    await database.db.deleteFrom('apps').execute();
    clock = TestClock.standing(new Date('2026-03-01T00:00:00.000Z'));
    router = createFakeRouter();
    const apps = createFakeApps({ router, logs: createFakeAppLogs(clock), clock });
    workloads = createFakeWorkloads(apps);
    metrics = createFakeUsageMetrics(apps);
    context = { db: database.db, clock, log: createLog('silent', () => undefined), platform: { metrics } };
    appId = await startApp();
  });

  /** An app with one web and one worker instance. */
  async function startApp(): Promise<AppId> {
    const id = newUuid<AppId>();
    await database.db
      .insertInto('apps')
      .values({
        id,
        tenant_id: tenantId,
        name: `app-${id.slice(0, 8)}`,
        git_url: null,
        branch: 'main',
        repository_id: id as string as RepositoryId,
        parent_app_id: null,
        preview_branch: null,
        current_release_id: newUuid<ReleaseId>(),
        created_by: 'ada' as UserId,
        deleted_at: null,
      })
      .execute();
    await workloads.ensureWorkload({
      appId: id,
      appName: `app-${id.slice(0, 8)}`,
      tenantId,
      releaseId: newUuid<ReleaseId>(),
      releaseVersion: 1,
      imageUrl: 'any',
      processes: [
        { type: 'web', command: 'serve', quantity: 1 },
        { type: 'worker', command: 'work', quantity: 1 },
      ],
      config: {},
      bindings: [],
      hosts: [hostOf(id)],
    });
    return id;
  }
  const hostOf = (id: AppId): string => `app-${id.slice(0, 8)}.apps.localhost`;

  function visit(count: number, outcome: { status?: number; milliseconds?: number } = {}, id = appId): void {
    for (let request = 0; request < count; request += 1) router.beginRequest(hostOf(id))?.end(outcome);
  }
  async function tick(seconds = 10): Promise<void> {
    clock.advance(seconds * 1000);
    await sampleApps(context);
  }
  async function read(kind: MetricKind, rangeSeconds: number, type = 'web', statistic?: string) {
    const principal = { tenantId, userId: 'ada' as UserId, role: 'viewer' } as Principal;
    const platform = { capabilities: { sandbox: true, pipeline: 'fake' }, metrics };
    const service = createAppMetrics({ db: database.db, clock, settings: { signup: 'open' }, platform });
    const series = await service.readMetrics(principal, appId, { kind, rangeSeconds });
    const found = series.find(({ labels }) => labels['process'] === type && labels['statistic'] === statistic);
    return { ...found, values: (found?.points ?? []).map(([, value]) => value) };
  }

  it('gives requests, errors and mean latency step by step, each where it happened', async () => {
    visit(3, { milliseconds: 10 });
    await tick();
    visit(1, { status: 503, milliseconds: 50 });
    visit(1, { milliseconds: 30 });
    await tick();
    await tick();
    const { points, unit, stepSeconds } = await read('requests', 60);
    expect([unit, stepSeconds]).toEqual(['requests', 10]);
    expect(points).toEqual([
      [new Date('2026-03-01T00:00:00Z'), 3],
      [new Date('2026-03-01T00:00:10Z'), 2],
      [new Date('2026-03-01T00:00:20Z'), 0],
    ]);
    expect((await read('errors', 60)).values).toEqual([0, 1, 0]);
    expect((await read('latency', 60, 'web', 'mean')).points).toEqual([
      [new Date('2026-03-01T00:00:00Z'), 10],
      [new Date('2026-03-01T00:00:10Z'), 40],
    ]);
  });

  it('gives percentiles of latency that are those of all requests of a step, however they were sampled', async () => {
    for (let round = 0; round < 18; round += 1) {
      visit(95, { milliseconds: 4 });
      visit(4, { milliseconds: 100 });
      visit(1, { milliseconds: 4000 });
      await tick();
    }
    for (const range of [secondsPerMinute, secondsPerHour, 6 * secondsPerHour, secondsPerDay, 30 * secondsPerDay]) {
      for (const [statistic, low, high] of [
        ['p50', 2.8, 4],
        ['p95', 2.8, 4],
        ['p99', 90, 128],
      ] as const) {
        const { values } = await read('latency', range, 'web', statistic);
        expect(values.length).toBeGreaterThan(0);
        for (const value of values) {
          expect(value).toBeGreaterThanOrEqual(low);
          expect(value).toBeLessThanOrEqual(high);
        }
      }
    }
    expect((await read('latency', 60, 'worker', 'p50')).values).toEqual([]);
  });

  it('gives processor time in cores and memory in bytes for each process type', async () => {
    metrics.use(appId, 'web.1', { cpuSeconds: 5, memoryBytes: 111 });
    metrics.use(appId, 'worker.1', { cpuSeconds: 20, memoryBytes: 222 });
    await tick();
    metrics.use(appId, 'web.1', { cpuSeconds: 1, memoryBytes: 99 });
    await tick();
    expect((await read('cpu', 60)).values).toEqual([0.5, 0.1]);
    expect((await read('memory', 60)).values).toEqual([111, 99]);
    expect((await read('cpu', 60, 'worker')).values).toEqual([2, 0]);
    expect((await read('requests', 60, 'worker')).values).toEqual([]);
  });

  it('loses no request and no second over hours: every range adds up to the same, in at most 361 points', async () => {
    const hours = 7;
    metrics.use(appId, 'web.1', { cpuSeconds: 1, memoryBytes: 1000 });
    await tick();
    // Every two minutes: more rounds would only take longer.
    const rounds = hours * 30;
    for (let round = 0; round < rounds; round += 1) {
      visit(4, { status: round % 2 === 0 ? 200 : 500, milliseconds: 5 });
      metrics.use(appId, 'web.1', { cpuSeconds: 12, memoryBytes: round === 100 ? 5000 : 1000 });
      await tick(120);
    }
    const total = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0);
    for (const rangeSeconds of [secondsPerDay, 7 * secondsPerDay, 30 * secondsPerDay]) {
      const { values } = await read('requests', rangeSeconds);
      expect(values.length).toBeLessThanOrEqual(361);
      expect(total(values)).toBe(4 * rounds);
      expect(total((await read('errors', rangeSeconds)).values)).toBe(2 * rounds);
      expect(Math.max(...(await read('memory', rangeSeconds)).values)).toBe(5000);
      for (const cores of (await read('cpu', rangeSeconds)).values) expect(cores).toBeCloseTo(0.1, 5);
    }
    expect(total((await read('requests', 6 * secondsPerHour)).values)).toBe(4 * 6 * 30);
  });

  it('continues where it stopped when another process samples after a while', async () => {
    visit(4);
    await tick();
    visit(5);
    clock.advance(600_000);
    // A new context with the same database and apps: nothing but the database is remembered.
    await sampleApps({ ...context });
    expect((await read('requests', secondsPerHour)).values).toEqual([4, 5]);
  });

  it('stores nothing of a round that failed, and includes it in the next', async () => {
    const failing = { metrics: { ...metrics, readUsage: () => Promise.reject(new Error('the gateway is away')) } };
    visit(4);
    clock.advance(10_000);
    await sampleApps({ ...context, platform: failing });
    visit(1);
    await tick();
    expect((await read('requests', 60)).values).toEqual([5]);
  });

  it('separates apps, and stops with an app that is deleted', async () => {
    const other = await startApp();
    visit(1);
    visit(9, {}, other);
    await tick();
    expect((await read('requests', 60)).values).toEqual([1]);
    await database.db.updateTable('apps').set({ deleted_at: clock.now() }).where('id', '=', other).execute();
    await tick();
    const rows = await database.db.selectFrom('app_samples').select('ts').where('app_id', '=', other).execute();
    expect(new Set(rows.map((row) => row.ts.toISOString()))).toEqual(new Set(['2026-03-01T00:00:00.000Z']));
  });

  it('stores samples of 10 s for 2 hours, of a minute for a day, of 5 minutes for 31 days, and no longer', async () => {
    await tick();
    const kept = async () => {
      await sweepSamples(context);
      const rows = await database.db
        .selectFrom('app_samples')
        .select('step_seconds')
        .distinct()
        .orderBy('step_seconds')
        .execute();
      return rows.map((row) => row.step_seconds);
    };
    expect(await kept()).toEqual([10, 60, 300]);
    clock.advance(2 * secondsPerHour * 1000);
    expect(await kept()).toEqual([60, 300]);
    clock.advance(secondsPerDay * 1000);
    expect(await kept()).toEqual([300]);
    clock.advance(31 * secondsPerDay * 1000);
    expect(await kept()).toEqual([]);
  });

  it('happens at multiples of ten seconds until it is stopped', async () => {
    clock.advance(3456);
    const stop = new AbortController();
    const times: string[] = [];
    const readUsage = async () => {
      times.push(clock.now().toISOString().slice(17));
      return { instances: [], traffic: [] };
    };
    const sampling = runSampling({ ...context, platform: { metrics: { ...metrics, readUsage } } }, stop.signal);
    clock.advance(6543);
    clock.advance(1);
    await expect.poll(() => times).toEqual(['10.000Z']);
    stop.abort(new Error('enough'));
    await sampling;
    clock.advance(60_000);
    expect(times).toEqual(['10.000Z']);
  });
});
