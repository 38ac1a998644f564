import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { runPurgeJob } from '#shared/core/deletion/purge-job.ts';
import { millisecondsPerDay } from '#shared/durations.ts';
import type { AppId } from '#shared/ids.ts';
import { type CoreFixture, createCoreFixture, type FixtureApp } from '#test/support/core/core-fixture.ts';

const patience = { timeout: 20_000 };
const month = 31 * millisecondsPerDay;

describe('what the platform has around an app', () => {
  let core: CoreFixture;
  let owner: Principal;
  let app: FixtureApp;
  /** Calls of the platform that begin or end something of an app, in their order: `ensureApp <id>`. */
  const calls: string[] = [];
  beforeAll(async () => {
    core = await createCoreFixture();
    owner = await core.signUp();
    const { appEnvironments, workloads, rollouts, addons, images, caches, logs } = core.platform;
    for (const port of [appEnvironments, workloads, rollouts, addons, images, caches, logs]) record(port);
    await core.startWorker();
  });
  afterAll(() => core?.close());
  beforeEach(async () => {
    app = await core.createApp(owner);
  });

  function record(port: object): void {
    for (const [name, verb] of Object.entries(port) as [string, (...args: unknown[]) => unknown][]) {
      if (!/^(ensure|start|run|delete)[A-Z]/.test(name)) continue;
      Object.assign(port, {
        [name]: (...args: unknown[]) => {
          const subject = args[0] as AppId | { appId?: AppId; spec?: { appId: AppId } };
          calls.push(`${name} ${typeof subject === 'string' ? subject : (subject.appId ?? subject.spec?.appId)}`);
          return verb(...args);
        },
      });
    }
  }
  const callsOf = (appId: AppId) => calls.flatMap((call) => (call.endsWith(` ${appId}`) ? [call.split(' ')[0] ?? ''] : []));
  const host = () => core.context.addresses.appHost(app.name);
  const readVersion = async (name: string) => (await core.services.apps.readApp(owner, name)).currentRelease?.version;

  /** Deleted, a month ago. */
  async function deleteForGood(): Promise<void> {
    await core.services.appDeletion.deleteApp(owner, app.id);
    const deletedAt = new Date(Date.now() - month);
    await core.context.db.updateTable('apps').set({ deleted_at: deletedAt }).where('deleted_at', 'is not', null).execute();
    await runPurgeJob(core.context, app.id);
  }

  it('is made when the app is created, with a certificate of its subdomain, before anything runs', async () => {
    await expect
      .poll(() => core.platform.appEnvironments.environments.get(app.id), patience)
      .toEqual({
        appId: app.id,
        appName: app.name,
        tenantId: owner.tenantId,
        host: host(),
      });
    await expect.poll(() => core.platform.certificates.hosts.has(host()), patience).toBe(true);
    expect(callsOf(app.id)).toEqual(['ensureApp']);
    await app.commit({ Procfile: 'web: serve\nrelease: migrate\n' });
    expect((await app.push('main')).code).toBe(0);
    const made = callsOf(app.id);
    expect(made.indexOf('startRollout')).toBeGreaterThan(made.indexOf('ensureApp'));
    expect(made.indexOf('runOnce')).toBeGreaterThan(made.indexOf('ensureApp'));
  });

  it('is made by the first deploy when it could not be made before', async () => {
    const { ensureApp } = core.platform.appEnvironments;
    let attempts = 0;
    core.platform.appEnvironments.ensureApp = async (environment) => {
      attempts += 1;
      if (attempts === 1) throw new Error('not just now');
      await ensureApp(environment);
    };
    try {
      app = await core.createApp(owner);
      await expect.poll(() => attempts, patience).toBe(1);
      await app.commit();
      expect((await app.push('main')).code).toBe(0);
    } finally {
      core.platform.appEnvironments.ensureApp = ensureApp;
    }
    expect(core.platform.appEnvironments.environments.has(app.id)).toBe(true);
    expect(callsOf(app.id).indexOf('startRollout')).toBeGreaterThan(callsOf(app.id).indexOf('ensureApp'));
  });

  it('is made for a preview before it runs', async () => {
    await app.commit();
    expect((await app.push('main', 'main:feature')).code).toBe(0);
    const name = `${app.name}-feature`;
    await expect.poll(() => readVersion(name), patience).toBe(1);
    const { id } = await core.services.apps.readApp(owner, name);
    expect(callsOf(id).indexOf('ensureApp')).toBeGreaterThanOrEqual(0);
    expect(callsOf(id).indexOf('startRollout')).toBeGreaterThan(callsOf(id).indexOf('ensureApp'));
    expect(core.platform.appEnvironments.environments.has(id)).toBe(true);
  });

  it('is made again for an app that is restored, before it runs', async () => {
    await app.commit();
    expect((await app.push('main')).code).toBe(0);
    await core.services.appDeletion.deleteApp(owner, app.id);
    await expect.poll(() => callsOf(app.id).at(-1), patience).toBe('deleteWorkload');
    const known = callsOf(app.id).length;
    await core.services.appDeletion.restoreApp(owner, app.id);
    await expect.poll(() => callsOf(app.id).at(-1), patience).toBe('ensureWorkload');
    expect(callsOf(app.id)[known]).toBe('ensureApp');
  });

  it('is the last to go when the app is purged, and its certificates go with it', async () => {
    await app.commit();
    expect((await app.push('main')).code).toBe(0);
    const own = `${app.name}.example.test`;
    await core.services.domains.addDomain(owner, app.id, own);
    await expect.poll(() => core.platform.certificates.hosts.has(own), patience).toBe(true);
    await deleteForGood();
    expect(callsOf(app.id).at(-1)).toBe('deleteApp');
    expect(core.platform.appEnvironments.environments.has(app.id)).toBe(false);
    expect([host(), own].filter((name) => core.platform.certificates.hosts.has(name))).toEqual([]);
  });

  it('has a certificate of a domain from when that leads to the app until it is removed', async () => {
    await app.commit();
    expect((await app.push('main')).code).toBe(0);
    const own = `${app.name}.example.test`;
    await core.services.domains.addDomain(owner, app.id, own);
    await expect.poll(() => core.platform.certificates.hosts.has(own), patience).toBe(true);
    await core.services.domains.removeDomain(owner, app.id, own);
    await expect.poll(() => core.platform.certificates.hosts.has(own), patience).toBe(false);
    expect(core.platform.certificates.hosts.has(host())).toBe(true);
  });
});
