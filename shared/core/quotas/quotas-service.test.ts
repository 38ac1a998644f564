import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { changeQuotas } from '#deploy/change-quotas.ts';
import { setQuota } from '#shared/core/accounts/quotas-store.ts';
import { millisecondsPerHour } from '#shared/durations.ts';
import type { AppId, TenantId } from '#shared/ids.ts';
import { type QuotaName, quotaNames } from '#shared/settings/quotas.ts';
import { seedBuild, seedRelease } from '#test/support/api/seeds.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';
import { ampleQuotas } from '#test/support/core/ample-quotas.ts';

describe('the quotas of a tenant', () => {
  let test: TestApi;
  let operator: TestUser;
  let ada: TestUser;
  beforeAll(async () => {
    test = await createTestApi();
    operator = await test.signUp();
  });
  afterAll(() => test?.close());
  beforeEach(async () => {
    ada = await test.signUp();
  });

  const allow = (name: QuotaName, amount: number) => setQuota(test.context.db, ada.tenantId as TenantId, name, amount);
  const ask = (method: string, path: string, json?: unknown) =>
    test.ask(method, path, { as: ada, ...(json === undefined ? {} : { json }) });
  async function readUsed(name: QuotaName): Promise<number | undefined> {
    const { body } = await ask('GET', '/v1/quotas');
    return (body.data as unknown as { name: string; used: number }[]).find((quota) => quota.name === name)?.used;
  }
  const createRunningApp = async (processes?: Record<string, string>): Promise<AppId> => {
    const { id } = await test.createApp(ada);
    await seedRelease(test, ada, id, processes as { web: string });
    return id;
  };
  /** How often each status was answered. */
  const countStatuses = (answers: readonly { status: number }[]): Record<string, number> => {
    const counts: Record<string, number> = {};
    for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  };

  it('are listed with what is used, and with what the operator has changed', async () => {
    await allow('apps', 7);
    const id = await createRunningApp();
    await seedBuild(test, ada, id);
    await ask('POST', `/v1/apps/${id}/addons`, { type: 'kvstore', plan: 'standard' });
    const { status, body } = await ask('GET', '/v1/quotas');
    expect(status).toBe(200);
    expect(body.data).toEqual([
      { name: 'apps', limit: 7, used: 1 },
      { name: 'instances', limit: ampleQuotas.instances, used: 1 },
      { name: 'memory_mib', limit: ampleQuotas.memory_mib, used: 512 },
      { name: 'builds_per_hour', limit: ampleQuotas.builds_per_hour, used: 1 },
      { name: 'kvstores', limit: ampleQuotas.kvstores, used: 1 },
      { name: 'kvstore_memory_mib', limit: ampleQuotas.kvstore_memory_mib, used: 256 },
      { name: 'databases', limit: ampleQuotas.databases, used: 0 },
    ]);
  });

  it('are none for the operator, who signed up first, unless they set their own', async () => {
    const read = async () => (await test.ask('GET', '/v1/quotas', { as: operator })).body.data;
    expect(await read()).toMatchObject([
      { name: 'apps', limit: null, used: 0 },
      ...quotaNames.slice(1).map(() => ({ limit: null })),
    ]);
    await setQuota(test.context.db, operator.tenantId as TenantId, 'apps', 0);
    expect(await read()).toMatchObject([{ name: 'apps', limit: 0 }, ...quotaNames.slice(1).map(() => ({ limit: null }))]);
    expect((await test.ask('POST', '/v1/apps', { as: operator, json: {} })).status).toBe(403);
  });

  it('bound the apps, however many are created at once', async () => {
    await allow('apps', 2);
    const answers = await Promise.all(Array.from({ length: 6 }, () => ask('POST', '/v1/apps', {})));
    expect(countStatuses(answers)).toEqual({ 201: 2, 403: 4 });
    const refused = answers.find(({ status }) => status === 403);
    expect(refused?.body.error).toMatchObject({
      code: 'forbidden',
      message: 'Your plan allows 2 apps; this team has 2. Delete one, or ask the operator of the platform for more.',
    });
    expect(await readUsed('apps')).toBe(2);
  });

  it('of one tenant leave another alone', async () => {
    await allow('apps', 0);
    expect((await ask('POST', '/v1/apps', {})).status).toBe(403);
    await test.createApp(await test.signUp());
  });

  it('bound the apps that are restored', async () => {
    await allow('apps', 1);
    const { id } = await test.createApp(ada);
    await ask('DELETE', `/v1/apps/${id}`);
    const other = await test.createApp(ada);
    expect((await ask('POST', `/v1/apps/${id}/restore`)).status).toBe(403);
    await ask('DELETE', `/v1/apps/${other.id}`);
    expect((await ask('POST', `/v1/apps/${id}/restore`)).status).toBe(200);
  });

  it('bound the builds an hour, however many are started at once, and forget them after an hour', async () => {
    await allow('builds_per_hour', 3);
    const { id } = await test.createApp(ada);
    const start = () => seedBuild(test, ada, id);
    const started = await Promise.allSettled(Array.from({ length: 8 }, start));
    expect(started.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
    await expect(start()).rejects.toMatchObject({
      code: 'forbidden',
      message: expect.stringContaining('allows 3 builds an hour; this team has started 3'),
    });
    test.clock.advance(millisecondsPerHour);
    await start();
    expect(await readUsed('builds_per_hour')).toBe(1);
  });

  it('bound the instances of all apps, however many are scaled at once, and let them scale down', async () => {
    await allow('instances', 5);
    const apps = [await createRunningApp(), await createRunningApp()];
    const scale = (id: AppId | undefined, quantity: number) => ask('PATCH', `/v1/apps/${id}/processes/web`, { quantity });
    const answers = await Promise.all(apps.map((id) => scale(id, 4)));
    expect(countStatuses(answers)).toEqual({ 200: 1, 403: 1 });
    expect(await readUsed('instances')).toBe(5);
    const big = apps[answers.findIndex(({ status }) => status === 200)];
    expect((await scale(big, 5)).body.error.message).toContain('allows 5 instances; this team would have 6');
    await allow('instances', 1);
    expect((await scale(big, 3)).status).toBe(200);
  });

  it('bound the memory of instances', async () => {
    await allow('memory_mib', 1024);
    const id = await createRunningApp();
    expect((await ask('PATCH', `/v1/apps/${id}/processes/web`, { quantity: 3 })).body.error.message).toContain('1536 MiB');
  });

  it('bound the add-ons of each type and their memory, however many are created at once', async () => {
    await allow('kvstores', 2);
    const apps = await Promise.all(Array.from({ length: 4 }, () => test.createApp(ada)));
    const add = (id: AppId | undefined, type: string, plan = 'free') => ask('POST', `/v1/apps/${id}/addons`, { type, plan });
    const answers = await Promise.all(apps.map(({ id }) => add(id, 'kvstore')));
    expect(answers.filter(({ status }) => status < 300)).toHaveLength(2);
    expect(answers.filter(({ status }) => status === 403)).toHaveLength(2);
    await allow('kvstore_memory_mib', 320);
    const [has] = apps.filter((_, index) => (answers[index]?.status ?? 500) < 300);
    expect((await add(has?.id, 'kvstore', 'pro')).body.error.message).toContain('would have 3136 MiB');
    expect((await add(has?.id, 'kvstore', 'standard')).status).toBe(200);
    await allow('databases', 0);
    expect((await add(has?.id, 'database')).body.error.message).toContain('allows 0 databases');
  });

  it('are changed by the operator for one tenant, and reset', async () => {
    const { db, settings } = test.context;
    const changed = await changeQuotas(db, settings, [ada.tenantId, 'apps=20', 'instances=0']);
    expect(changed).toEqual(expect.arrayContaining(['  apps=20', '  instances=0', `  kvstores=${ampleQuotas.kvstores}`]));
    expect(await changeQuotas(db, settings, [ada.tenantId, '--reset', 'apps=3'])).toEqual(
      expect.arrayContaining(['  apps=3', `  instances=${ampleQuotas.instances}`]),
    );
    await expect(changeQuotas(db, settings, ['nobody', 'apps=3'])).rejects.toThrow('There is no tenant nobody.');
    await expect(changeQuotas(db, settings, [ada.tenantId, 'cats=3'])).rejects.toThrow('there are: apps,');
    await expect(changeQuotas(db, settings, [])).rejects.toThrow('Usage:');
  });
});
