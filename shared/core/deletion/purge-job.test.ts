import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { runBuildJob } from '#shared/core/builds/build-job.ts';
import { runPurgeJob } from '#shared/core/deletion/purge-job.ts';
import type { AppId } from '#shared/ids.ts';
import { createHouse, type House, type HouseApp } from '#test/support/house.ts';

const never = new AbortController().signal;

describe('a purge', () => {
  let house: House;
  let owner: Principal;
  let app: HouseApp;
  let preview: AppId;
  beforeAll(async () => {
    house = await createHouse();
    owner = await house.signUp();
  });
  afterAll(() => house.close());
  beforeEach(async () => {
    app = await house.createApp(owner);
    await app.commit();
    await app.push('-o', 'detach', 'main', 'main:feature');
    const rows = await house.context.db.selectFrom('apps').select(['id', 'parent_app_id']).execute();
    preview = rows.find((row) => row.parent_app_id === app.id)?.id as AppId;
    for (const id of [app.id, preview]) await runBuildJob(house.context, (await house.latestBuild(id)).id, never);
    await house.services.config.changeConfig(owner, app.id, { A: '1' });
  });

  /** Long ago. */
  async function deleteApp(): Promise<void> {
    await house.services.apps.deleteApp(owner, app.id);
    await house.context.db
      .updateTable('apps')
      .set({ deleted_at: new Date(Date.now() - 31 * 24 * 60 * 60 * 1000) })
      .where('deleted_at', 'is not', null)
      .execute();
  }

  /** Names of the tables that know the app. */
  async function findTraces(id: AppId): Promise<string[]> {
    const { rows } = await sql<{ table: string; column: string }>`
      select table_name as table, column_name as column from information_schema.columns
      where table_schema = 'public' and column_name in ('app_id', 'parent_app_id', 'repository_id')
        or table_schema = 'public' and table_name = 'apps' and column_name = 'id'`.execute(house.context.db);
    expect(rows.length).toBeGreaterThan(10);
    const traces: string[] = [];
    for (const { table, column } of rows) {
      const found = await sql`select 1 from ${sql.table(table)} where ${sql.ref(column)}::text = ${id} limit 1`.execute(
        house.context.db,
      );
      if (found.rows.length > 0) traces.push(table);
    }
    return traces;
  }

  it('leaves nothing of an app in any table', async () => {
    expect(await findTraces(app.id)).not.toEqual([]);
    await deleteApp();
    await runPurgeJob(house.context, app.id);
    expect(await findTraces(app.id)).toEqual([]);
  });

  it('takes previews along, with what they have on the ground', async () => {
    const { image_url: image } = await house.latestBuild(preview);
    expect(await house.platform.images.imageExists(image ?? '')).toBe(true);
    await deleteApp();
    await runPurgeJob(house.context, app.id);
    await runPurgeJob(house.context, preview);
    expect(await findTraces(preview)).toEqual([]);
    expect(await house.platform.images.imageExists(image ?? '')).toBe(false);
    expect(await house.platform.caches.readCache(preview)).toBeUndefined();
  });

  it('leaves an app alone that was restored', async () => {
    await house.services.apps.deleteApp(owner, app.id);
    await house.services.apps.restoreApp(owner, app.id);
    await runPurgeJob(house.context, app.id);
    expect((await house.services.apps.readApp(owner, app.id)).status).toBe('active');
    expect((await house.services.apps.readApp(owner, preview)).status).toBe('active');
  });

  it('of a preview leaves the repository, which is its app’s', async () => {
    const removed = await app.push('--delete', 'feature');
    expect(removed.code).toBe(0);
    await runPurgeJob(house.context, preview);
    expect(await findTraces(preview)).toEqual([]);
    expect(
      await house.context.git.refs.listRefs((await house.services.pushes.openRepository(owner, app.name, 'read')).repositoryId),
    ).toHaveLength(1);
  });

  it('takes nothing from a preview that comes back while it is at work: that waits, and is a new one', async () => {
    const name = (await house.services.apps.readApp(owner, preview)).name;
    await app.push('--delete', 'feature');
    const { deleteLogs } = house.platform.logs;
    let pushing: Promise<unknown> | undefined;
    house.platform.logs.deleteLogs = async (id) => {
      pushing = app.push('-o', 'detach', 'main:feature');
      await expect.poll(countWaiting, { timeout: 20_000 }).toBe(1);
      return deleteLogs(id);
    };
    await runPurgeJob(house.context, preview).finally(() => {
      house.platform.logs.deleteLogs = deleteLogs;
    });
    await pushing;
    const back = await house.services.apps.readApp(owner, name);
    expect(back).toMatchObject({ status: 'active', preview: { parentAppId: app.id, branch: 'feature' } });
    expect(await findTraces(preview)).toEqual([]);
    const build = await house.latestBuild(back.id);
    expect(build.cache_state).toBe('Cold');
    await runBuildJob(house.context, build.id, never);
    expect(await house.platform.images.imageExists((await house.latestBuild(back.id)).image_url ?? '')).toBe(true);
  });

  /** Transactions of this database that wait for another's lock. */
  async function countWaiting(): Promise<number> {
    const { rows } = await sql`select 1 from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`.execute(house.context.db);
    return rows.length;
  }

  it('cannot be foregone for a preview alone while its app is deleted', async () => {
    await house.services.apps.deleteApp(owner, app.id);
    await expect(house.services.apps.restoreApp(owner, preview)).rejects.toMatchObject({ code: 'conflict' });
  });
});
