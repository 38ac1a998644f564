import { expect, it } from 'vitest';
import { enqueueBuild } from '#shared/core/apps/app-jobs.ts';
import type { BuildRow } from '#shared/core/builds/builds-store.ts';
import { type AppId, newUuid, type TenantId } from '#shared/ids.ts';
import { createCoreFixture } from '#test/support/core/core-fixture.ts';

it('a push waits for one build at most of a tenant that has queued 1,000', { timeout: 120_000 }, async () => {
  const core = await createCoreFixture({ workerSlots: { builds: 2 } });
  const { context, platform } = core;
  try {
    const [greedy, honest] = [await core.signUp(), await core.signUp()];
    const started: { tenantId: TenantId; end(): void }[] = [];
    core.buildStep = ({ tenantId }, _files, _line, signal) =>
      new Promise((resolve) => {
        const end = (): void => resolve();
        started.push({ tenantId, end });
        signal.addEventListener('abort', end, { once: true });
      });
    const app = await core.createApp(greedy);
    await app.commit();
    await app.push('-o', 'detach', 'main');
    await queueCopies(await core.latestBuild(app.id), 999);
    await core.startWorker();
    await expect.poll(() => started.length, { timeout: 30_000 }).toBe(1);
    const honestApp = await core.createApp(honest);
    await honestApp.commit();
    const pushed = honestApp.push('main');
    await expect.poll(() => started.map(({ tenantId }) => tenantId), { timeout: 30_000 }).toContain(honest.tenantId);
    // One build of the other tenant ran when the push came, and no other has started since.
    expect(started.map(({ tenantId }) => tenantId)).toEqual([greedy.tenantId, honest.tenantId]);
    started[1]?.end();
    expect((await pushed).code).toBe(0);
  } finally {
    await platform.builds.stop();
    await core.close();
  }

  /** Builds of as many other apps of the tenant, which wait. */
  async function queueCopies(build: BuildRow, count: number): Promise<void> {
    const { db } = context;
    await db.transaction().execute(async (trx) => {
      const row = await trx.selectFrom('apps').selectAll().where('id', '=', build.app_id).executeTakeFirstOrThrow();
      const { purge_begun_at: _, ...app } = row;
      const ids = Array.from({ length: count }, () => newUuid<AppId>());
      await trx
        .insertInto('apps')
        .values(ids.map((id, index) => ({ ...app, id, name: `${app.name.slice(0, 30)}-${index}` })))
        .execute();
      const { ref_changes: _moves, source: _source, processes: _processes, ...queued } = build;
      const builds = ids.map((app_id) => ({ ...queued, id: newUuid<BuildRow['id']>(), app_id }));
      await trx
        .insertInto('builds')
        .values(builds.map((each) => ({ ...each, ref_changes: null, source: null, processes: null })))
        .execute();
      for (const { id, app_id } of builds) await enqueueBuild(context, trx, app_id, id);
    });
  }
});
