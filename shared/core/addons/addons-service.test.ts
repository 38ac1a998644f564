import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createJobHandlers } from '#deploy/control-plane.ts';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { runEnsureAddonJob } from '#shared/core/addons/addon-job.ts';
import { readAppById } from '#shared/core/apps/apps-store.ts';
import { readBaseRelease } from '#shared/core/releases/releases-store.ts';
import { workloadSpec } from '#shared/core/releases/workload-spec.ts';
import { millisecondsPerDay } from '#shared/durations.ts';
import type { AppId, DeployId, TenantId, UserId } from '#shared/ids.ts';
import type { FakeJobs } from '#shared/jobs/fake-jobs.ts';
import type { JobHandlers, JobWorker } from '#shared/jobs/jobs.ts';
import type { FakeAddons } from '#shared/platform/fake/addons.ts';
import { workloadEnvironment } from '#shared/platform/workload-environment.ts';
import { seedRelease } from '#test/support/api/seeds.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let handlers: JobHandlers;
let fake: FakeAddons;
let ada: TestUser;
let principal: Principal;
let app: { id: AppId; name: string };
beforeAll(async () => {
  test = await createTestApi();
  // Deploys have tests of their own. These look at what a deploy would bring live.
  handlers = { ...createJobHandlers(test.context), deploy: ({ deployId }) => endDeploys(deployId) };
  fake = test.context.platform.addons as FakeAddons;
  ada = await test.signUp();
  principal = { userId: ada.id as UserId, email: ada.email, tenantId: ada.tenantId as TenantId, role: 'owner' };
});
afterAll(() => test?.close());
beforeEach(async () => {
  app = await test.createApp(ada);
});

/** As the job does, without a rollout. */
async function endDeploys(deployId: DeployId): Promise<void> {
  await test.context.db.updateTable('deploys').set({ status: 'live' }).where('id', '=', deployId).execute();
}

async function withWorker(work: () => Promise<unknown>): Promise<void> {
  const worker: JobWorker = (test.context.jobs as FakeJobs).start(handlers);
  await work().finally(() => worker.stop());
}
const addons = () => test.services.addons;
const statuses = async () => (await addons().listAddons(principal, app.id)).map(({ status }) => status);
const untilReady = () => withWorker(() => expect.poll(statuses).toEqual(['Ready']));
const releases = async () => (await test.services.releases.listReleases(principal, app.id, { limit: 50 })).items;
/** What the newest release would run with. */
async function environment(): Promise<Readonly<Record<string, string>>> {
  const row = await readAppById(test.context.db, app.id);
  const release = await readBaseRelease(test.context.db, app.id);
  if (row === undefined || release === undefined) throw new Error('nothing was released');
  return workloadEnvironment(await workloadSpec(test.context, row, release));
}

describe('an add-on', () => {
  it('is `creating` until its servers are created, then has the status that follows from them', async () => {
    const { addon, created } = await addons().createAddon(principal, app.id, { type: 'kvstore', plan: 'pro' });
    expect([addon.status, created]).toEqual(['creating', true]);
    expect(await statuses()).toEqual(['creating']);
    await untilReady();
    for (const [ready, status] of [[0, 'Creating'], [1, 'Failed'], [2, 'Failed'], [3, 'Ready']] as const) {
      fake.limitReady(app.id, 'kvstore', ready);
      expect(await statuses()).toEqual([status]);
    } // biome-ignore format: a table
  });

  it.each([
    ['free', 1, 64],
    ['standard', 1, 256],
    ['pro', 3, 1024],
    ['enormous', 1, 64],
  ])('of the plan %s has %d servers of %d MiB', async (plan, replicas, mebibytes) => {
    await addons().createAddon(principal, app.id, { type: 'kvstore', plan });
    await untilReady();
    expect(fake.readSpec(app.id, 'kvstore')).toMatchObject({ replicas, memoryBytes: mebibytes * 1024 * 1024 });
  });

  it('reaches the app by one release, and is not among its own variables', async () => {
    await seedRelease(test, ada, app.id);
    await addons().createAddon(principal, app.id, { type: 'kvstore' });
    expect(await environment()).not.toHaveProperty('KVSTORE_URL');
    await untilReady();
    const { uri } = await addons().readCredentials(principal, app.id, 'kvstore');
    expect((await environment())['KVSTORE_URL']).toBe(uri);
    expect(await test.services.config.readConfig(principal, app.id)).not.toHaveProperty('KVSTORE_URL');
    expect(await test.services.config.readConfig(principal, app.id, true)).toHaveProperty('KVSTORE_URL', uri);
    expect((await releases()).map(({ kind, version }) => [kind, version])).toEqual([['addon', 2], ['build', 1]]); // biome-ignore format: a table
    expect(await test.services.config.readConfig(principal, app.id)).toEqual({});
  });

  it('is also given as its clients expect it, if the app wants that, below what the app sets itself', async () => {
    await seedRelease(test, ada, app.id);
    await test.services.config.changeConfig(principal, app.id, { PGUSER: 'mine' });
    for (const type of ['kvstore', 'database'] as const) await addons().createAddon(principal, app.id, { type });
    await withWorker(() => expect.poll(statuses).toEqual(['Ready', 'Ready']));
    const [kvstore, database] = await Promise.all(
      (['kvstore', 'database'] as const).map((type) => addons().readCredentials(principal, app.id, type)),
    );
    expect(await environment()).not.toHaveProperty('REDIS_URL');
    const before = (await releases()).length;
    await test.services.settings.changeSettings(principal, app.id, { clientVariables: true });
    expect((await releases()).length).toBe(before + 1);
    const { username, pathname } = new URL(database?.uri ?? '');
    expect(await environment()).toMatchObject({
      KVSTORE_URL: kvstore?.uri,
      REDIS_URL: kvstore?.uri,
      DATABASE_URL: database?.uri,
      PGHOST: database?.host,
      PGPORT: String(database?.port),
      PGUSER: 'mine',
      PGPASSWORD: database?.password,
      PGDATABASE: pathname.slice(1),
    });
    await test.services.config.changeConfig(principal, app.id, { PGUSER: null });
    expect((await environment())['PGUSER']).toBe(username);
    expect(await test.services.config.readConfig(principal, app.id, true)).toHaveProperty('PGUSER', username);
    await test.services.settings.changeSettings(principal, app.id, { clientVariables: null });
    expect(await environment()).not.toHaveProperty('PGHOST');
  });

  it('that is created again only changes its plan, without a release', async () => {
    await seedRelease(test, ada, app.id);
    await addons().createAddon(principal, app.id, { type: 'kvstore' });
    await untilReady();
    const before = await addons().readCredentials(principal, app.id, 'kvstore');
    const again = await addons().createAddon(principal, app.id, { type: 'kvstore', plan: 'standard' });
    expect([again.created, again.addon.plan, again.addon.status]).toEqual([false, 'standard', 'creating']);
    await untilReady();
    expect(fake.readSpec(app.id, 'kvstore')?.memoryBytes).toBe(256 * 1024 * 1024);
    expect(await addons().readCredentials(principal, app.id, 'kvstore')).toEqual(before);
    expect(await releases()).toHaveLength(2);
  });

  it('is created once by several requests at the same time', async () => {
    const asked = Array.from({ length: 5 }, () => addons().createAddon(principal, app.id, { type: 'database' }));
    expect((await Promise.all(asked)).filter(({ created }) => created)).toHaveLength(1);
    await untilReady();
  });

  it('gets a new password, which the app gets by a release', async () => {
    await seedRelease(test, ada, app.id);
    await addons().createAddon(principal, app.id, { type: 'database' });
    await untilReady();
    const before = await addons().readCredentials(principal, app.id, 'database');
    await addons().rotatePassword(principal, app.id, 'database');
    await untilReady();
    const after = await addons().readCredentials(principal, app.id, 'database');
    expect(after.password).not.toBe(before.password);
    expect((await environment())['DATABASE_URL']).toBe(after.uri);
    expect(await releases()).toHaveLength(3);
    expect(() => fake.open(before.uri)).toThrow('password is wrong');
  });

  it('reserves its variable while it exists', async () => {
    await addons().createAddon(principal, app.id, { type: 'kvstore' });
    for (const value of ['mine', null]) {
      const change = test.services.config.changeConfig(principal, app.id, { KVSTORE_URL: value, OTHER: 'x' });
      await expect(change).rejects.toMatchObject({ code: 'conflict' });
    }
    expect(await test.services.config.changeConfig(principal, app.id, { DATABASE_URL: 'my own' })).toEqual({
      DATABASE_URL: 'my own',
    });
    const second = addons().createAddon(principal, app.id, { type: 'database' });
    await expect(second).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('paas config:unset DATABASE_URL'),
    });
  });

  it('that is removed is first removed from the app by a release, then deleted with its data', async () => {
    await seedRelease(test, ada, app.id);
    await addons().createAddon(principal, app.id, { type: 'kvstore' });
    await untilReady();
    await addons().deleteAddon(principal, app.id, 'kvstore');
    expect(await environment()).not.toHaveProperty('KVSTORE_URL');
    expect((await releases())[0]).toMatchObject({ kind: 'addon', version: 3 });
    expect(await statuses()).toEqual([]);
    expect(await fake.readAddon(app.id, 'kvstore')).toBeDefined();
    await expect(addons().createAddon(principal, app.id, { type: 'kvstore' })).rejects.toMatchObject({ code: 'conflict' });
    await withWorker(() => expect.poll(() => fake.readAddon(app.id, 'kvstore')).toBeUndefined());
    await expect.poll(async () => (await addons().createAddon(principal, app.id, { type: 'kvstore' })).created).toBe(true);
  });

  it('that is removed keeps its servers until the release without it is live', async () => {
    await seedRelease(test, ada, app.id);
    await addons().createAddon(principal, app.id, { type: 'kvstore' });
    await untilReady();
    await addons().deleteAddon(principal, app.id, 'kvstore');
    const { context } = test;
    const ensure = () => runEnsureAddonJob(context, app.id, 'kvstore', new AbortController().signal);
    await ensure();
    expect(await fake.readAddon(app.id, 'kvstore')).toBeDefined();
    await context.db.updateTable('deploys').set({ status: 'live' }).where('app_id', '=', app.id).execute();
    await ensure();
    expect(await fake.readAddon(app.id, 'kvstore')).toBeUndefined();
  });

  it('that the platform does not have is refused with what to do, and leaves no record', async () => {
    fake.refuse('kvstore', 'There is none. Install it: apt-get install -y redis-server');
    const asked = addons().createAddon(principal, app.id, { type: 'kvstore' });
    await expect(asked).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining('apt-get install') });
    fake.refuse('kvstore', undefined);
    expect(await statuses()).toEqual([]);
  });

  it('is not written by a job that a change has overtaken', async () => {
    await seedRelease(test, ada, app.id);
    await addons().createAddon(principal, app.id, { type: 'kvstore' });
    await untilReady();
    const before = await addons().readCredentials(principal, app.id, 'kvstore');
    fake.limitReady(app.id, 'kvstore', 0);
    await addons().rotatePassword(principal, app.id, 'kvstore');
    const overtaken = handlers['ensure-addon']({ appId: app.id, addonType: 'kvstore' }, new AbortController().signal);
    await expect.poll(() => fake.readSpec(app.id, 'kvstore')?.password).not.toBe(before.password);
    await addons().rotatePassword(principal, app.id, 'kvstore');
    fake.limitReady(app.id, 'kvstore', undefined);
    await overtaken;
    expect(await addons().readCredentials(principal, app.id, 'kvstore')).toEqual(before);
    await untilReady();
    expect((await addons().readCredentials(principal, app.id, 'kvstore')).password).not.toBe(before.password);
    expect(await releases()).toHaveLength(3);
  });

  // The last test, since it advances the clock, and Ada's token expires.
  it('stops with its app, starts with it again with its data, and is deleted when the app is purged', async () => {
    await addons().createAddon(principal, app.id, { type: 'kvstore' });
    await untilReady();
    const { uri } = await addons().readCredentials(principal, app.id, 'kvstore');
    fake.open(uri).set('word', 'kept');
    await test.services.appDeletion.deleteApp(principal, app.id);
    const desired = async () => (await fake.readAddon(app.id, 'kvstore'))?.desired;
    await withWorker(() => expect.poll(desired).toBe(0));
    await test.services.appDeletion.restoreApp(principal, app.id);
    await withWorker(() => expect.poll(desired).toBe(1));
    expect(fake.open(uri).get('word')).toBe('kept');
    await test.services.appDeletion.deleteApp(principal, app.id);
    test.clock.advance(31 * millisecondsPerDay);
    await handlers['purge-app']({ appId: app.id }, new AbortController().signal);
    expect(await fake.readAddon(app.id, 'kvstore')).toBeUndefined();
  });
});
