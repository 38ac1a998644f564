import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createJobHandlers } from '#deploy/control-plane.ts';
import type { AppId } from '#shared/ids.ts';
import type { FakeJobs } from '#shared/jobs/fake-jobs.ts';
import { apiRunsHere } from '#test/support/api/api-runtime.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
let app: { id: AppId; name: string };
beforeAll(async () => {
  test = await createTestApi();
  ada = await test.signUp();
});
afterAll(() => test?.close());
beforeEach(async () => {
  app = await test.createApp(ada);
});

const create = (json: unknown, as = ada) => test.ask('POST', `/v1/apps/${app.id}/addons`, { as, json });
const list = async () => (await test.ask('GET', `/v1/apps/${app.id}/addons`, { as: ada })).body.data;
/** Runs the enqueued jobs. The fake queue knows no transactions, so it starts after them. */
async function untilReady(): Promise<void> {
  const worker = (test.context.jobs as FakeJobs).start(createJobHandlers(test.context));
  const statuses = async () => (await list()).map(({ status }) => status);
  await expect
    .poll(statuses, { timeout: 10_000 })
    .toEqual(['Ready'])
    .finally(() => worker.stop());
}
async function createReady(type: string): Promise<void> {
  expect((await create({ type })).status).toBe(201);
  await untilReady();
}

describe('add-ons', () => {
  it.runIf(apiRunsHere)('are created with 201, change their plan with 200, and are listed', async () => {
    const { status, body } = await create({ type: 'kvstore', plan: 'standard' });
    expect([status, body.data]).toEqual([
      201,
      {
        app_id: app.id,
        addon_type: 'kvstore',
        plan: 'standard',
        status: 'creating',
        config_var: 'KVSTORE_URL',
        created_at: expect.any(String),
        updated_at: expect.any(String),
      },
    ]);
    const again = await create({ type: 'kvstore', plan: 'no such plan' });
    expect([again.status, again.body.data.plan]).toEqual([200, 'free']);
    await untilReady();
    expect(await list()).toMatchObject([{ addon_type: 'kvstore', plan: 'free' }]);
  });

  it.each(['id', 'name'] as const)('of type database have a route of their own, which takes the app by %s', async (by) => {
    const { status, body } = await test.ask('POST', '/v1/addons/database', { as: ada, json: { app_id: app[by] } });
    expect([status, body.data.addon_type, body.data.config_var]).toEqual([201, 'database', 'DATABASE_URL']);
  });

  it.each([{}, { type: 'mysql' }, { type: 'kvstore', plan: 1 }, []])('are not created by %j', async (json) => {
    expect((await create(json)).status).toBe(422);
  });

  it.runIf(apiRunsHere)('show their credentials to those who may see secrets of the app, and no cache stores them', async () => {
    await createReady('kvstore');
    const { status, body, headers } = await test.ask('GET', `/v1/apps/${app.id}/addons/kvstore/credentials`, { as: ada });
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(body.data.uri).toBe(`redis://:${body.data.password}@${body.data.host}:${body.data.port}`);
    const rotated = await test.ask('POST', `/v1/apps/${app.id}/addons/kvstore/rotate`, { as: ada });
    expect([rotated.status, rotated.body.data.status]).toEqual([202, 'creating']);
  });

  it.runIf(apiRunsHere)('are deleted, and are not listed any more', async () => {
    await createReady('database');
    const { status, body } = await test.ask('DELETE', `/v1/apps/${app.id}/addons/database`, { as: ada });
    expect([status, body.data.status, await list()]).toEqual([200, 'deleting', []]);
    expect((await test.ask('DELETE', `/v1/apps/${app.id}/addons/database`, { as: ada })).status).toBe(404);
  });

  it.runIf(apiRunsHere)('of an app of somebody else, of no app and of no type are not found', async () => {
    await createReady('kvstore');
    const eve = await test.signUp();
    expect((await create({ type: 'kvstore' }, eve)).status).toBe(404);
    expect((await test.ask('POST', '/v1/addons/database', { as: eve, json: { app_id: app.id } })).status).toBe(404);
    expect((await test.ask('GET', `/v1/apps/${app.id}/addons`, { as: eve })).status).toBe(404);
    for (const [method, path] of [['DELETE', ''], ['GET', '/credentials'], ['POST', '/rotate']] as const) {
      expect((await test.ask(method, `/v1/apps/${app.id}/addons/kvstore${path}`, { as: eve })).status).toBe(404);
      for (const type of ['database', 'mysql', 'a.b'])
        expect((await test.ask(method, `/v1/apps/${app.id}/addons/${type}${path}`, { as: ada })).status).toBe(404);
    } // biome-ignore format: a table
    expect(await list()).toMatchObject([{ status: 'Ready' }]);
  });
});
