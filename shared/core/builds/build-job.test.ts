import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { runBuildJob } from '#shared/core/builds/build-job.ts';
import type { BuildRow } from '#shared/core/builds/builds-store.ts';
import { AppError } from '#shared/errors.ts';
import type { Builds } from '#shared/platform/builds.ts';
import type { FakeBuildStep } from '#shared/platform/fake/builds.ts';
import { createFakePlatform } from '#shared/platform/fake/fake-platform.ts';
import { watchToEnd } from '#shared/platform/testing/build-specs.ts';
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

  /** A step that waits for `letGo` before it goes on. */
  const holdBuild = () => {
    const [begun, paused] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const step: FakeBuildStep = async (_spec, _files, line) => {
      line('before');
      begun.resolve();
      await paused.promise;
      line('after');
    };
    return { step, begun: begun.promise, letGo: paused.resolve };
  };
  /** A newer build is released while the older one stands still. */
  const overtake = async (): Promise<{ newer: BuildRow; finish(): Promise<void> }> => {
    const { step, begun, letGo } = holdBuild();
    core.buildStep = step;
    const older = run();
    await begun;
    core.buildStep = async () => undefined;
    await app.commit();
    await app.push('-o', 'detach', 'main');
    const newer = await core.latestBuild(app.id);
    await runBuildJob(core.context, newer.id, never);
    return {
      newer,
      async finish() {
        letGo();
        await older;
      },
    };
  };
  const details = async () => (await readLog()).split('\n').filter((line) => /^ {7}(before|after)$/.test(line));
  const isKnown = async (): Promise<boolean> => {
    const { outcome } = await watchToEnd(core.platform.builds, build.id);
    return outcome.status !== 'lost';
  };

  it('of an older attempt can neither finish the build nor release it, nor write its log', async () => {
    const { step, begun, letGo } = holdBuild();
    // On a machine that hangs: the platform of the newer attempt knows nothing of it.
    const older = runBuildJob(
      { ...core.context, platform: createFakePlatform({ clock: core.context.clock, buildStep: step }) },
      build.id,
      never,
    );
    await begun;
    core.buildStep = async () => 'The newer attempt says no.';
    await run();
    letGo();
    await older;
    expect(await read()).toMatchObject({ status: 'failed', error: 'The newer attempt says no.', releaseId: null });
    expect(await releases()).toEqual([]);
    expect(await details()).not.toContain('       after');
  });

  it('leaves the build on the platform when the worker stops; the next worker watches it from there to its end', async () => {
    const { step, begun, letGo } = holdBuild();
    let builds = 0;
    core.buildStep = async (...args) => {
      builds += 1;
      return step(...args);
    };
    const stopping = new AbortController();
    const stopped = expect(run(stopping.signal)).rejects.toThrow('stopping');
    await begun;
    await expect.poll(details).toEqual(['       before']);
    stopping.abort(new Error('stopping'));
    await stopped;
    expect((await read()).status).toBe('running');
    const next = run();
    letGo();
    await next;
    expect((await read()).status).toBe('succeeded');
    expect(await releases()).toHaveLength(1);
    expect(await details()).toEqual(['       before', '       after']);
    expect(await readLog()).not.toContain('Starting over');
    expect(builds).toBe(1);
  });

  it('records a build that has ended while nobody watched, with all of its lines', async () => {
    const { step, begun, letGo } = holdBuild();
    core.buildStep = step;
    const stopping = new AbortController();
    const stopped = expect(run(stopping.signal)).rejects.toThrow('stopping');
    await begun;
    stopping.abort(new Error('stopping'));
    await stopped;
    letGo();
    await watchToEnd(core.platform.builds, build.id);
    await run();
    expect((await read()).status).toBe('succeeded');
    expect(await details()).toEqual(['       before', '       after']);
  });

  it.each(['between two attempts', 'while it is watched'])('starts a build over that the platform has lost %s', async (when) => {
    const first = holdBuild();
    core.buildStep = first.step;
    const stopping = new AbortController();
    const running = run(stopping.signal);
    await first.begun;
    await expect.poll(details).toEqual(['       before']);
    core.buildStep = async (_spec, _files, line) => line('after');
    if (when === 'while it is watched') {
      await core.platform.builds.loseBuild(build.id);
      await running;
    } else {
      const stopped = expect(running).rejects.toThrow('stopping');
      stopping.abort(new Error('stopping'));
      await stopped;
      await core.platform.builds.loseBuild(build.id);
      await run();
    }
    expect((await read()).status).toBe('succeeded');
    expect(await readLog()).toMatch(/before\n-----> Starting over: .*\n.*detected.*\n {7}after\n/);
    expect(await releases()).toHaveLength(1);
  });

  it('starts a build over whose source could not be read since the database was away', async () => {
    let starts = 0;
    core.buildStep = async () => {
      starts += 1;
      if (starts === 1) throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
      return undefined;
    };
    await run();
    expect(starts).toBe(2);
    expect(await read()).toMatchObject({ status: 'succeeded' });
    expect(await isKnown()).toBe(false);
  });

  it('of a platform that loses the build each time fails it', async () => {
    core.buildStep = async () => {
      void core.platform.builds.loseBuild(build.id);
      return new Promise(() => undefined);
    };
    await run();
    expect(await read()).toMatchObject({ status: 'failed', error: expect.stringContaining('The platform failed') });
  });

  it('leaves nothing of the build on the platform once it is recorded, also when that fails at first', async () => {
    const broken = {
      ...core.context.platform,
      builds: { ...core.context.platform.builds, deleteBuild: () => Promise.reject(new Error('no answer')) },
    };
    await expect(runBuildJob({ ...core.context, platform: broken }, build.id, never)).rejects.toThrow('no answer');
    expect(await read()).toMatchObject({ status: 'succeeded' });
    expect(await isKnown()).toBe(true);
    await run();
    expect(await isKnown()).toBe(false);
    expect(await releases()).toHaveLength(1);
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

  it('that is taken up again after a newer build was released is superseded: the app does not go back', async () => {
    const { newer, finish } = await overtake();
    await finish();
    expect(await read()).toMatchObject({ status: 'canceled', error: 'Superseded by a newer push.', releaseId: null });
    expect(await releases()).toMatchObject([{ version: 1, commit: newer.commit }]);
  });

  it('is released after a newer build whose release failed', async () => {
    const { finish } = await overtake();
    await core.context.db.updateTable('deploys').set({ status: 'failed' }).where('app_id', '=', app.id).execute();
    await finish();
    expect(await releases()).toMatchObject([{ version: 2, commit: build.commit }, { version: 1 }]);
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

  it('cancels a build that another worker has started, and one whose platform does not answer at first', async () => {
    const { step, begun } = holdBuild();
    core.buildStep = step;
    const stopping = new AbortController();
    const stopped = expect(run(stopping.signal)).rejects.toThrow('stopping');
    await begun;
    stopping.abort(new Error('stopping'));
    await stopped;
    let asked = 0;
    const { builds } = core.context.platform;
    const slow: Builds = {
      ...builds,
      cancelBuild: async (buildId) => {
        asked += 1;
        if (asked === 1) throw new Error('no answer');
        return builds.cancelBuild(buildId);
      },
    };
    const running = runBuildJob({ ...core.context, platform: { ...core.context.platform, builds: slow } }, build.id, never);
    await core.services.builds.cancelBuild(owner, app.id, build.id);
    await running;
    expect(asked).toBe(2);
    expect(await read()).toMatchObject({ status: 'canceled', error: 'Canceled.' });
    expect(await readLog()).toContain(' !     Canceled.');
  });

  it('ends a build whose app is purged', async () => {
    const { step, begun } = holdBuild();
    core.buildStep = step;
    const running = run();
    await begun;
    await core.context.db.deleteFrom('apps').where('id', '=', app.id).execute();
    await running;
    expect(await isKnown()).toBe(false);
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

  it('repeats what the platform says is wrong where that is meant for users', async () => {
    core.buildStep = async () => {
      throw new AppError('internal', 'The cluster does not know the kind PipelineRun. Install Tekton Pipelines.');
    };
    await run();
    expect(await readLog()).toContain('not your app. The cluster does not know the kind PipelineRun. Install Tekton Pipelines.');
  });

  it('fails a build whose variables cannot be read, instead of leaving it running', async () => {
    await core.context.db.insertInto('config_vars').values({ app_id: app.id, name: 'A', value: 'v1.sealed.otherwise' }).execute();
    await run();
    expect((await read()).status).toBe('failed');
    expect(await readLog()).toContain('The platform failed, not your app.');
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
