import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sampleApps } from '#shared/core/telemetry/app-sampling.ts';
import { seedRelease } from '#test/support/api/seeds.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

describe('GET /v1/apps/:id/metrics', () => {
  let test: TestApi;
  let user: TestUser;
  beforeAll(async () => {
    test = await createTestApi();
    user = await test.signUp();
  });
  afterAll(() => test.close());

  it('200: series of every kind or of one kind', async () => {
    const app = await test.createApp(user);
    await seedRelease(test, user, app.id);
    await test.context.platform.workloads.ensureWorkload({
      appId: app.id,
      appName: app.name,
      tenantId: user.tenantId as never,
      releaseId: crypto.randomUUID() as never,
      releaseVersion: 1,
      imageUrl: 'any',
      processes: [{ type: 'web', command: 'serve', quantity: 1 }],
      config: {},
      bindings: [],
      hosts: [`${app.name}.apps.localhost`],
    });
    await sampleApps(test.context);
    const all = await test.ask('GET', `/v1/apps/${app.name}/metrics`, { as: user });
    expect(all.status).toBe(200);
    const titles = all.body.data.map(({ name, unit, labels }) => `${[name, labels['statistic']].join(' ').trim()} in ${unit}`);
    expect(titles).toEqual([
      'cpu in cores',
      'memory in bytes',
      'requests in requests',
      'errors in requests',
      'latency p50 in milliseconds',
      'latency p95 in milliseconds',
      'latency p99 in milliseconds',
      'latency mean in milliseconds',
    ]);
    const one = await test.ask('GET', `/v1/apps/${app.id}/metrics?kind=memory&range=30d`, { as: user });
    expect(one.body.data).toMatchObject([{ name: 'memory', labels: { process: 'web' }, step_seconds: 7200 }]);
    expect(one.body.data[0]?.points).toEqual([[expect.stringMatching(/Z$/), 20 * 1024 * 1024]]);
  });

  it('200: no series for an app that never ran', async () => {
    const app = await test.createApp(user);
    const { status, body } = await test.ask('GET', `/v1/apps/${app.id}/metrics`, { as: user });
    expect([status, body.data]).toEqual([200, []]);
  });

  it.each(['range=59s', 'range=31d', 'range=1w', 'range=-5m', 'range=1h30m', 'range=', 'kind=disk'])('422: %s', async (query) => {
    const app = await test.createApp(user);
    const { status, body } = await test.ask('GET', `/v1/apps/${app.id}/metrics?${query}`, { as: user });
    expect([status, body.error.details[0]?.path]).toEqual([422, query.split('=')[0]]);
  });

  it('404: an app of another tenant, as if it did not exist', async () => {
    const app = await test.createApp(user);
    const stranger = await test.signUp();
    const foreign = await test.ask('GET', `/v1/apps/${app.id}/metrics`, { as: stranger });
    const none = await test.ask('GET', `/v1/apps/${crypto.randomUUID()}/metrics`, { as: stranger });
    expect([foreign.status, foreign.body.error.message]).toEqual([404, none.body.error.message]);
  });
});
