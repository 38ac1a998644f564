import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readAppById } from '#shared/core/apps/apps-store.ts';
import { ensurePreview } from '#shared/core/apps/previews.ts';
import { listNewestReleases, readReleaseById } from '#shared/core/releases/releases-store.ts';
import { workloadSpec } from '#shared/core/releases/workload-spec.ts';
import type { AppId, ReleaseId, UserId } from '#shared/ids.ts';
import { seedRelease } from '#test/support/api/seeds.ts';
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

const change = (json: unknown, id: string = app.id) => test.ask('PATCH', `/v1/apps/${id}/settings`, { as: ada, json });
const versions = async () => (await listNewestReleases(test.context.db, app.id, 10)).map(({ version }) => version);
const releases = async () => (await test.ask('GET', `/v1/apps/${app.id}/releases`, { as: ada })).body.data;
const unset = {
  health_path: null,
  health_timeout_seconds: null,
  boot_timeout_seconds: null,
  session_affinity: null,
  directory: null,
  client_variables: null,
};

/** What would run of the app's newest release. */
async function newestSpec() {
  const { context } = test;
  const [newest] = await releases();
  const row = await readAppById(context.db, app.id);
  const release = newest && (await readReleaseById(context.db, newest.id as ReleaseId));
  if (row === undefined || release === undefined) throw new Error('There is no release.');
  return workloadSpec(context, row, release);
}

describe('settings of an app', () => {
  it('are changed one by one, and reset by null', async () => {
    expect((await test.ask('GET', `/v1/apps/${app.id}/settings`, { as: ada })).body.data).toEqual(unset);
    expect((await change({ health_path: '/up', boot_timeout_seconds: 120 })).body.data).toEqual({
      ...unset,
      health_path: '/up',
      boot_timeout_seconds: 120,
    });
    expect((await change({ health_path: null, session_affinity: false })).body.data).toEqual({
      ...unset,
      boot_timeout_seconds: 120,
      session_affinity: false,
    });
  });

  it.each([
    [{ health_path: 'up' }, 'health_path'],
    [{ health_path: '/a b' }, 'health_path'],
    [{ health_path: '/a#b' }, 'health_path'],
    [{ health_path: '/a\r\nHost: x' }, 'health_path'],
    [{ health_path: `/${'a'.repeat(200)}` }, 'health_path'],
    [{ health_timeout_seconds: 0 }, 'health_timeout_seconds'],
    [{ health_timeout_seconds: 61 }, 'health_timeout_seconds'],
    [{ boot_timeout_seconds: 1.5 }, 'boot_timeout_seconds'],
    [{ boot_timeout_seconds: 601 }, 'boot_timeout_seconds'],
    [{ session_affinity: 'on' }, 'session_affinity'],
  ])('refuse %j by name, and change nothing', async (json, path) => {
    const { status, body } = await change({ ...json });
    expect([status, body.error.code, body.error.details?.[0]?.path]).toEqual([422, 'validation_failed', path]);
    expect((await test.ask('GET', `/v1/apps/${app.id}/settings`, { as: ada })).body.data).toEqual(unset);
  });

  it('belong to releases: a change of the health check or of the boot time-out creates one, the same again none', async () => {
    await seedRelease(test, ada, app.id);
    await change({ health_path: '/up?deep=1', health_timeout_seconds: 3, boot_timeout_seconds: 120 });
    const [newest] = await releases();
    expect(newest).toMatchObject({
      version: 2,
      kind: 'config',
      description: 'Set health path; Set health time-out; Set boot time-out',
    });
    expect(await newestSpec()).toMatchObject({ healthPath: '/up?deep=1', healthTimeoutSeconds: 3, bootTimeoutSeconds: 120 });
    await change({ health_path: '/up?deep=1' });
    expect(await versions()).toEqual([2, 1]);
  });

  it('of affinity apply to the present release, without another', async () => {
    await seedRelease(test, ada, app.id);
    await change({ session_affinity: false });
    expect(await versions()).toEqual([1]);
    expect((await newestSpec()).sessionAffinity).toBe(false);
  });

  it('are those of the release again after a rollback, but for affinity', async () => {
    await change({ health_path: '/old' });
    await seedRelease(test, ada, app.id);
    await change({ health_path: '/new', boot_timeout_seconds: 90, session_affinity: false });
    await test.ask('POST', `/v1/apps/${app.id}/deploys/v1/rollback`, { as: ada });
    const { body } = await test.ask('GET', `/v1/apps/${app.id}/settings`, { as: ada });
    expect(body.data).toEqual({ ...unset, health_path: '/old', session_affinity: false });
    expect(await newestSpec()).toMatchObject({ healthPath: '/old', sessionAffinity: false });
  });

  it('are those of the app in a preview, where that has none of its own', async () => {
    await change({ health_path: '/up', boot_timeout_seconds: 120 });
    const { context } = test;
    const parent = await readAppById(context.db, app.id);
    if (parent === undefined) throw new Error('no such app');
    const preview = await context.db
      .transaction()
      .execute((trx) => ensurePreview(context, trx, parent, 'topic', ada.id as UserId));
    expect((await change({ boot_timeout_seconds: 30 }, preview.id)).body.data).toEqual({
      ...unset,
      health_path: '/up',
      boot_timeout_seconds: 30,
    });
  });
});
