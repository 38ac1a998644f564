import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { followDrift } from '#shared/core/drift/drift-repair.ts';
import { sweepOrphans } from '#shared/core/drift/orphans.ts';
import { type AppId, newUuid } from '#shared/ids.ts';
import { createFakeDrift } from '#shared/platform/fake/drift.ts';
import { type CoreFixture, createCoreFixture, type FixtureApp } from '#test/support/core/core-fixture.ts';

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

  it('objects of apps that the database does not know are removed, those of all others stay', async () => {
    const drift = createFakeDrift();
    const orphan = newUuid<AppId>();
    await core.platform.appEnvironments.ensureApp({
      appId: orphan,
      appName: 'gone',
      tenantId: owner.tenantId,
      host: 'gone.test',
    });
    await core.platform.caches.ensureCache(orphan);
    drift.appIds = [app.id, orphan];
    const never = new AbortController().signal;
    expect(await sweepOrphans(core.context, drift, never)).toEqual([orphan]);
    expect(core.platform.appEnvironments.environments.has(orphan)).toBe(false);
    expect(await core.platform.caches.readCache(orphan)).toBeUndefined();
    expect(core.platform.appEnvironments.environments.has(app.id)).toBe(true);
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
