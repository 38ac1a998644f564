import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { runBuildJob } from '#shared/core/builds/build-job.ts';
import { runPurgeJob } from '#shared/core/deletion/purge-job.ts';
import { millisecondsPerDay } from '#shared/durations.ts';
import type { AppId } from '#shared/ids.ts';
import { type CoreFixture, createCoreFixture, type FixtureApp } from '#test/support/core/core-fixture.ts';

const never = new AbortController().signal;

describe('a purge', () => {
  let core: CoreFixture;
  let owner: Principal;
  let app: FixtureApp;
  let preview: AppId;
  beforeAll(async () => {
    core = await createCoreFixture();
    owner = await core.signUp();
  });
  afterAll(() => core.close());
  beforeEach(async () => {
    app = await core.createApp(owner);
    await app.commit();
    await app.push('-o', 'detach', 'main', 'main:feature');
    const rows = await core.context.db.selectFrom('apps').select(['id', 'parent_app_id']).execute();
    preview = rows.find((row) => row.parent_app_id === app.id)?.id as AppId;
    for (const id of [app.id, preview]) await runBuildJob(core.context, (await core.latestBuild(id)).id, never);
    await core.services.config.changeConfig(owner, app.id, { A: '1' });
  });

  /** Long ago. */
  async function deleteApp(): Promise<void> {
    await core.services.appDeletion.deleteApp(owner, app.id);
    await core.context.db
      .updateTable('apps')
      .set({ deleted_at: new Date(Date.now() - 31 * millisecondsPerDay) })
      .where('deleted_at', 'is not', null)
      .execute();
  }

  /** Names of the tables that know the app. */
  async function findTraces(id: AppId): Promise<string[]> {
    const { rows } = await sql<{ table: string; column: string }>`
      select table_name as table, column_name as column from information_schema.columns
      where table_schema = 'public' and column_name in ('app_id', 'parent_app_id', 'repository_id')
        or table_schema = 'public' and table_name = 'apps' and column_name = 'id'`.execute(core.context.db);
    expect(rows.length).toBeGreaterThan(10);
    const traces: string[] = [];
    for (const { table, column } of rows) {
      const found = await sql`select 1 from ${sql.table(table)} where ${sql.ref(column)}::text = ${id} limit 1`.execute(
        core.context.db,
      );
      if (found.rows.length > 0) traces.push(table);
    }
    return traces;
  }

  it('leaves nothing of an app in any table', async () => {
    expect(await findTraces(app.id)).not.toEqual([]);
    await deleteApp();
    await runPurgeJob(core.context, app.id);
    expect(await findTraces(app.id)).toEqual([]);
  });

  it('takes previews along, with everything the platform has of them', async () => {
    const { image_url: image } = await core.latestBuild(preview);
    expect(await core.platform.images.imageExists(image ?? '')).toBe(true);
    await deleteApp();
    await runPurgeJob(core.context, app.id);
    await runPurgeJob(core.context, preview);
    expect(await findTraces(preview)).toEqual([]);
    expect(await core.platform.images.imageExists(image ?? '')).toBe(false);
    expect(await core.platform.caches.readCache(preview)).toBeUndefined();
  });

  it('leaves an app alone that was restored', async () => {
    await core.services.appDeletion.deleteApp(owner, app.id);
    await core.services.appDeletion.restoreApp(owner, app.id);
    await runPurgeJob(core.context, app.id);
    expect((await core.services.apps.readApp(owner, app.id)).status).toBe('active');
    expect((await core.services.apps.readApp(owner, preview)).status).toBe('active');
  });

  it('of a preview leaves the repository, which is its app’s', async () => {
    const removed = await app.push('--delete', 'feature');
    expect(removed.code).toBe(0);
    await runPurgeJob(core.context, preview);
    expect(await findTraces(preview)).toEqual([]);
    expect(
      await core.context.git.refs.listRefs((await core.services.pushes.openRepository(owner, app.name, 'read')).repositoryId),
    ).toHaveLength(1);
  });

  it('of a preview lets a push of its branch wait until it is over, which then gets a new preview', async () => {
    const name = (await core.services.apps.readApp(owner, preview)).name;
    await app.push('--delete', 'feature');
    const { deleteLogs } = core.platform.logs;
    let pushing: Promise<unknown> | undefined;
    core.platform.logs.deleteLogs = async (id) => {
      pushing = app.push('-o', 'detach', 'main:feature');
      await expect.poll(() => core.logged.join(), { timeout: 20_000 }).toContain(`is purged.","appId":"${preview}"`);
      return deleteLogs(id);
    };
    await runPurgeJob(core.context, preview).finally(() => {
      core.platform.logs.deleteLogs = deleteLogs;
    });
    await pushing;
    const back = await core.services.apps.readApp(owner, name);
    expect(back).toMatchObject({ status: 'active', preview: { parentAppId: app.id, branch: 'feature' } });
    expect(await findTraces(preview)).toEqual([]);
    const build = await core.latestBuild(back.id);
    expect(build.cache_state).toBe('Cold');
    await runBuildJob(core.context, build.id, never);
    expect(await core.platform.images.imageExists((await core.latestBuild(back.id)).image_url ?? '')).toBe(true);
  });

  it('that was cut short is finished by the next one, and lets nobody restore the app in between', async () => {
    await deleteApp();
    const { deleteLogs } = core.platform.logs;
    core.platform.logs.deleteLogs = () => Promise.reject(new Error('the platform is away'));
    await expect(runPurgeJob(core.context, app.id)).rejects.toThrow('the platform is away');
    core.platform.logs.deleteLogs = deleteLogs;
    await core.context.db.updateTable('apps').set({ deleted_at: new Date() }).where('id', '=', app.id).execute();
    await expect(core.services.appDeletion.restoreApp(owner, app.id)).rejects.toMatchObject({ code: 'not_found' });
    await core.context.db
      .updateTable('apps')
      .set({ deleted_at: new Date(0) })
      .where('id', '=', app.id)
      .execute();
    await runPurgeJob(core.context, app.id);
    expect(await findTraces(app.id)).toEqual([]);
  });

  it('that somebody wants begins at once, also of an app that is deleted already, and frees its name', async () => {
    const images = [app.id, preview].map(async (id) => (await core.latestBuild(id)).image_url ?? '');
    for (const deletedBefore of [false, true]) {
      const target = deletedBefore ? await core.createApp(owner) : app;
      if (deletedBefore) await core.services.appDeletion.deleteApp(owner, target.id);
      const deleted = await core.services.appDeletion.deleteApp(owner, target.name, { purge: true });
      expect(deleted).toMatchObject({ status: 'deleted', restorableUntil: null });
      await expect(core.services.appDeletion.restoreApp(owner, target.id)).rejects.toMatchObject({ code: 'not_found' });
      expect((await core.services.apps.listApps(owner, { limit: 50, deleted: true })).items).toEqual([]);
      await runPurgeJob(core.context, target.id);
      expect(await findTraces(target.id)).toEqual([]);
      expect(await core.services.apps.createApp(owner, { name: target.name })).toMatchObject({ status: 'active' });
    }
    expect(await findTraces(preview)).toEqual([]);
    for (const image of await Promise.all(images)) expect(await core.platform.images.imageExists(image)).toBe(false);
  });

  it('cannot be foregone for a preview alone while its app is deleted', async () => {
    await core.services.appDeletion.deleteApp(owner, app.id);
    await expect(core.services.appDeletion.restoreApp(owner, preview)).rejects.toMatchObject({ code: 'conflict' });
  });
});
