import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import type { Context } from '#shared/core/context.ts';
import { createAppMetrics } from '#shared/core/telemetry/app-metrics-service.ts';
import { runSampling } from '#shared/core/telemetry/app-sampling.ts';
import type { AppMetrics } from '#shared/core/telemetry/telemetry.ts';
import { secondsPerHour } from '#shared/durations.ts';
import type { AppId, TenantId, UserId } from '#shared/ids.ts';
import { createFakeSeriesMetrics, type FakeSeriesMetrics } from '#shared/platform/fake/metrics.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

describe('metrics of a platform that keeps series itself', () => {
  let test: TestApi;
  let ada: TestUser;
  let principal: Principal;
  let app: { id: AppId; name: string };
  let metrics: FakeSeriesMetrics;
  let context: Context;
  let service: AppMetrics;
  beforeAll(async () => {
    test = await createTestApi();
    ada = await test.signUp();
    principal = { userId: ada.id as UserId, email: ada.email, tenantId: ada.tenantId as TenantId, role: 'viewer' };
  });
  afterAll(() => test?.close());
  beforeEach(async () => {
    app = await test.createApp(ada);
    metrics = createFakeSeriesMetrics();
    context = { ...test.context, platform: { ...test.context.platform, metrics } };
    service = createAppMetrics(context);
  });

  it('are asked for by kind, over the range and in its steps, and have their unit', async () => {
    const now = test.clock.now().getTime();
    const [old, recent] = [new Date(now - 7200_000), new Date(now - 30_000)];
    const labels = { process: 'web', statistic: 'p95' };
    metrics.setSeries(app.id, 'latency', [{ labels, points: [[old, 9], [recent, 12.5]] }]); // biome-ignore format: points
    const series = await service.readMetrics(principal, app.name, { kind: 'latency', rangeSeconds: 900 });
    expect(series).toEqual([{ name: 'latency', unit: 'milliseconds', labels, stepSeconds: 10, points: [[recent, 12.5]] }]);
    expect(metrics.queries).toMatchObject([{ appId: app.id, kind: 'latency', stepSeconds: 10 }]);
    const [{ from, to } = { from: new Date(0), to: new Date(0) }] = metrics.queries;
    expect(to.getTime() - from.getTime()).toBeGreaterThan(889_000);
    expect(to.getTime() - from.getTime()).toBeLessThanOrEqual(900_000);
    expect(from.getTime() % 10_000).toBe(0);
  });

  it('are of all kinds when none is asked for', async () => {
    for (const kind of ['cpu', 'memory', 'requests', 'errors'] as const)
      metrics.setSeries(app.id, kind, [{ labels: { process: 'web' }, points: [] }]);
    const series = await service.readMetrics(principal, app.name, { rangeSeconds: secondsPerHour });
    expect(series.map(({ name, unit }) => [name, unit])).toEqual([
      ['cpu', 'cores'],
      ['memory', 'bytes'],
      ['requests', 'requests'],
      ['errors', 'requests'],
    ]);
  });

  it('are not sampled', async () => {
    await runSampling(context, new AbortController().signal);
    expect(metrics.queries).toEqual([]);
  });
});
