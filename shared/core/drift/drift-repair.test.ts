import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { followDrift } from '#shared/core/drift/drift-repair.ts';
import { sweepOrphans } from '#shared/core/drift/orphans.ts';
import { millisecondsPerDay } from '#shared/durations.ts';
import { type AppId, newUuid } from '#shared/ids.ts';
import { createFakeDrift } from '#shared/platform/fake/drift.ts';
import { type CoreFixture, createCoreFixture, type FixtureApp } from '#test/support/core/core-fixture.ts';
import { TestClock } from '#test/support/test-clock.ts';

describe('what others change on the platform', () => {
  let core: CoreFixture;
  let owner: Principal;
  let app: FixtureApp;
  beforeAll(async () => {
    core = await createCoreFixture();
    owner = await core.signUp();
    await core.startWorker();
  });
  afterAll(() => core.close());
  beforeEach(async () => {
    app = await core.createApp(owner);
    await app.commit();
    const pushed = await app.push('main');
    expect(pushed.code, pushed.stderr).toBe(0);
    await expect.poll(() => core.platform.appEnvironments.environments.has(app.id)).toBe(true);
  });

  /** Runs the repair until the check passes. */
  async function whileFollowing(drift: ReturnType<typeof createFakeDrift>, check: () => Promise<void>): Promise<void> {
    const over = new AbortController();
    const following = followDrift(core.context, drift, over.signal);
    try {
      await check();
    } finally {
      over.abort();
      await following;
    }
  }
  const instances = async () => (await core.platform.workloads.readInstances(app.id)).map(({ name }) => name);

  it('is put back from the database: environment, instances and certificates', async () => {
    const { hosts } = core.platform.certificates;
    const host = core.context.addresses.appHost(app.name);
    const drift = createFakeDrift();
    await whileFollowing(drift, async () => {
      await core.platform.workloads.deleteWorkload(app.id);
      await core.platform.appEnvironments.deleteApp(app.id);
      drift.report({ of: 'app', appId: app.id });
      await expect.poll(instances).toEqual(['web.1']);
      await expect.poll(() => core.platform.appEnvironments.environments.has(app.id)).toBe(true);

      await core.platform.certificates.deleteCertificate(host);
      drift.report({ of: 'certificate', host });
      await expect.poll(() => hosts.has(host)).toBe(true);

      await core.platform.appEnvironments.deleteApp(app.id);
      drift.report({ of: 'tenant', tenantId: owner.tenantId });
      await expect.poll(() => core.platform.appEnvironments.environments.size).toBeGreaterThan(0);
    });
  });

  it('is stopped again for an app that is deleted', async () => {
    const drift = createFakeDrift();
    await core.services.appDeletion.deleteApp(owner, app.id);
    await expect.poll(instances).toEqual([]);
    await whileFollowing(drift, async () => {
      drift.report({ of: 'app', appId: newUuid<AppId>() });
      drift.report({ of: 'app', appId: app.id });
      await expect.poll(() => core.logged.filter((line) => line.includes(app.id) && line.includes('put back'))).toHaveLength(1);
    });
    expect(await instances()).toEqual([]);
  });

  it('stays while the repair of something else fails', async () => {
    const drift = createFakeDrift();
    const { jobs } = core.context;
    let failures = 1;
    const failing = {
      ...core.context,
      jobs: {
        enqueue: async (...args: Parameters<typeof jobs.enqueue>) => {
          if (failures-- > 0) throw new Error('no connection');
          return jobs.enqueue(...args);
        },
      },
    } as typeof core.context;
    const over = new AbortController();
    const following = followDrift(failing, drift, over.signal);
    drift.report({ of: 'app', appId: app.id });
    await core.platform.workloads.deleteWorkload(app.id);
    drift.report({ of: 'app', appId: app.id });
    await expect.poll(instances).toEqual(['web.1']);
    over.abort();
    await following;
  });

  describe('apps that the database does not know', () => {
    const never = new AbortController().signal;
    const orphanDays = 3;
    const clock = TestClock.standing();
    let orphan: AppId;
    let drift: ReturnType<typeof createFakeDrift>;
    let data: Map<string, string>;
    const sweep = () => {
      const { context } = core;
      return sweepOrphans({ ...context, clock, settings: { ...context.settings, orphanDays } }, drift, never);
    };
    const addon = () => core.platform.addons.readAddon(orphan, 'kvstore');
    beforeEach(async () => {
      orphan = newUuid<AppId>();
      drift = createFakeDrift();
      drift.appIds = [app.id, orphan];
      const { tenantId } = owner;
      await core.platform.appEnvironments.ensureApp({ appId: orphan, appName: 'gone', tenantId, host: 'gone.test' });
      await core.platform.caches.ensureCache(orphan);
      const spec = { appId: orphan, tenantId, type: 'kvstore', replicas: 1, memoryBytes: 1, connections: 1 } as const;
      const { uri } = await core.platform.addons.ensureAddon({ ...spec, password: 'secret' });
      data = core.platform.addons.open(uri).set('key', 'value');
    });

    it('are stopped, keep their data for the days that the operator has set, and are removed then', async () => {
      expect(await sweep()).toEqual([]);
      expect(await addon()).toEqual({ ready: 0, desired: 0 });
      clock.advance(orphanDays * millisecondsPerDay - 1);
      expect(await sweep()).toEqual([]);
      expect(await addon()).toBeDefined();
      expect(core.platform.appEnvironments.environments.has(orphan)).toBe(true);
      expect(core.logged.filter((line) => line.includes(orphan))).toHaveLength(1);

      clock.advance(1);
      expect(await sweep()).toEqual([orphan]);
      expect(await addon()).toBeUndefined();
      expect(core.platform.appEnvironments.environments.has(orphan)).toBe(false);
      expect(await core.platform.caches.readCache(orphan)).toBeUndefined();
      expect(core.platform.appEnvironments.environments.has(app.id)).toBe(true);
      expect(core.logged.filter((line) => line.includes(orphan))).toHaveLength(2);
    });

    it('have all their days again when the database has known them in the meantime', async () => {
      await sweep();
      clock.advance(orphanDays * millisecondsPerDay);
      drift.appIds = [app.id];
      await sweep();
      drift.appIds = [app.id, orphan];
      expect(await sweep()).toEqual([]);
      expect(data.get('key')).toBe('value');
      expect(await addon()).toBeDefined();
    });
  });

  it('nothing is removed when the database knows few of the apps: it is the wrong one', async () => {
    const drift = createFakeDrift();
    drift.appIds = Array.from({ length: 11 }, () => newUuid<AppId>());
    for (const appId of drift.appIds)
      await core.platform.appEnvironments.ensureApp({ appId, appName: 'other', tenantId: owner.tenantId, host: 'other.test' });
    expect(await sweepOrphans(core.context, drift, new AbortController().signal)).toEqual([]);
    for (const appId of drift.appIds) expect(core.platform.appEnvironments.environments.has(appId)).toBe(true);
    expect(core.logged.join()).toContain('check PAAS_DATABASE_URL');
  });
});
