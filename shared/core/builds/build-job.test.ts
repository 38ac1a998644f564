import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { runBuildJob } from '#shared/core/builds/build-job.ts';
import type { BuildRow } from '#shared/core/builds/builds-store.ts';
import { type CoreFixture, createCoreFixture, type FixtureApp } from '#test/support/core/core-fixture.ts';

const never = new AbortController().signal;

describe('a build job', () => {
  let core: CoreFixture;
  let owner: Principal;
  let app: FixtureApp;
  /** Queued; no worker takes it. */
  let build: BuildRow;
  beforeAll(async () => {
    core = await createCoreFixture();
    owner = await core.signUp();
  });
  afterAll(() => core.close());
  beforeEach(async () => {
    core.buildStep = async () => undefined;
    app = await core.createApp(owner);
    await app.commit();
    await app.push('-o', 'detach', 'main');
    build = await core.latestBuild(app.id);
  });

  const run = (signal = never): Promise<void> => runBuildJob(core.context, build.id, signal);
  const read = () => core.services.builds.readBuild(owner, app.id, build.id);
  const releases = async () => (await core.services.releases.listReleases(owner, app.id, { limit: 50 })).items;
  const readLog = async () =>
    (await core.services.builds.readBuildLog(owner, app.id, build.id, {})).map(({ line }) => line).join('\n');

  it('of an older attempt can neither finish the build nor release it', async () => {
    const [begun, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    core.buildStep = async () => {
      begun.resolve();
      await held.promise;
      return undefined;
    };
    const older = run();
    await begun.promise;
    core.buildStep = async () => 'The newer attempt says no.';
    await run();
    held.resolve();
    await older;
    expect(await read()).toMatchObject({ status: 'failed', error: 'The newer attempt says no.', releaseId: null });
    expect(await releases()).toEqual([]);
  });

  it('makes one release, however often it is run', async () => {
    await run();
    await run();
    expect(await releases()).toHaveLength(1);
  });

  it('makes one release, also when another attempt begins while it is recorded', async () => {
    const { db } = core.context;
    await db.insertInto('release_counters').values({ app_id: app.id, last_version: 0 }).execute();
    const [counting, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const holding = db.transaction().execute(async (trx) => {
      await trx.selectFrom('release_counters').selectAll().where('app_id', '=', app.id).forUpdate().execute();
      counting.resolve();
      await go.promise;
    });
    await counting.promise;
    const waiting = async (count: number): Promise<void> =>
      expect
        .poll(async () => {
          const { rows } =
            await sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(db);
          return rows.length;
        })
        .toBeGreaterThanOrEqual(count);
    const older = run();
    await waiting(1);
    const newer = run();
    await waiting(2);
    go.resolve();
    await Promise.all([holding, older, newer]);
    expect(await releases()).toHaveLength(1);
    expect(await read()).toMatchObject({ status: 'succeeded', releaseId: (await releases())[0]?.id });
  });

  it('ends when a running build is canceled', async () => {
    const begun = Promise.withResolvers<void>();
    core.buildStep = async (_spec, _files, _line, signal) => {
      begun.resolve();
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    };
    const running = run();
    await begun.promise;
    await core.services.builds.cancelBuild(owner, app.id, build.id);
    await running;
    expect(await read()).toMatchObject({ status: 'canceled', error: 'Canceled.' });
    expect(await releases()).toEqual([]);
  });

  it('releases nothing of a build that was canceled at its last moment', async () => {
    core.buildStep = async () => {
      await core.context.db.updateTable('builds').set({ cancel_requested: true }).where('id', '=', build.id).execute();
    };
    await run();
    expect(await read()).toMatchObject({ status: 'canceled', error: 'Canceled.' });
    expect(await releases()).toEqual([]);
  });

  it('releases nothing of an app that was deleted at its last moment', async () => {
    core.buildStep = async () => {
      await core.context.db.updateTable('apps').set({ deleted_at: new Date() }).where('id', '=', app.id).execute();
    };
    await run();
    await core.context.db.updateTable('apps').set({ deleted_at: null }).where('id', '=', app.id).execute();
    expect(await read()).toMatchObject({ status: 'canceled' });
    expect(await releases()).toEqual([]);
  });

  it('does not run a build that was canceled while it waited', async () => {
    await core.services.builds.cancelBuild(owner, app.id, build.id);
    await run();
    expect(await read()).toMatchObject({ status: 'canceled', startedAt: null });
  });

  it('tells of a fault of ours without its details, which the operator gets', async () => {
    core.buildStep = async () => {
      throw new Error('the disk /secret/place is full');
    };
    await run();
    expect((await read()).status).toBe('failed');
    expect(await readLog()).toContain('The platform failed, not your app.');
    expect(await readLog()).not.toContain('/secret/place');
    expect(core.logged.join()).toContain('the disk /secret/place is full');
  });

  it('fails a build whose variables cannot be read, instead of leaving it running', async () => {
    await core.context.db.insertInto('config_vars').values({ app_id: app.id, name: 'A', value: 'v1.sealed.otherwise' }).execute();
    await run();
    expect((await read()).status).toBe('failed');
    expect(await readLog()).toContain('The platform failed, not your app.');
  });

  it('throws when the worker stops, and starts over with the next one', async () => {
    const stopping = new AbortController();
    core.buildStep = async () => stopping.abort(new Error('stopping'));
    await expect(run(stopping.signal)).rejects.toThrow('stopping');
    expect((await read()).status).toBe('running');
    core.buildStep = async () => undefined;
    await run();
    expect((await read()).status).toBe('succeeded');
    expect(await readLog()).toContain('Starting over');
  });

  it('stores every line once, in order, though the database takes none for a while', async () => {
    core.buildStep = async (_spec, _files, line) => {
      line('said before');
      await sql`alter table build_logs rename to build_logs_away`.execute(core.context.db);
      line('said meanwhile');
      await expect
        .poll(() => core.logged.join(), { timeout: 20_000 })
        .toContain(`cannot be stored yet; trying again.","buildId":"${build.id}"`);
      await sql`alter table build_logs_away rename to build_logs`.execute(core.context.db);
      line('said after');
      return undefined;
    };
    await run();
    const lines = (await readLog()).split('\n').map((line) => line.trim());
    expect(lines.filter((line) => line.startsWith('said'))).toEqual(['said before', 'said meanwhile', 'said after']);
  });

  it('blots secret values out of the log, also over characters that PostgreSQL does not take', async () => {
    await core.services.config.changeConfig(owner, app.id, { API_TOKEN: 'correcthorsebattery' });
    core.buildStep = async (_spec, _files, line) => {
      line('token=correcthorsebattery');
      line('correct\0horsebattery');
    };
    await run();
    expect(await readLog()).toContain('token=[redacted]');
    expect(await readLog()).not.toContain('correcthorsebattery');
  });
});
