import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { findApp } from '#shared/core/apps/apps-store.ts';
import { ensurePreview } from '#shared/core/apps/previews.ts';
import { runBuildJob } from '#shared/core/builds/build-job.ts';
import { runDeployJob } from '#shared/core/releases/deploy-job.ts';
import { newUuid } from '#shared/ids.ts';
import { type CoreFixture, createCoreFixture, type FixtureApp } from '#test/support/core/core-fixture.ts';

const never = new AbortController().signal;

let core: CoreFixture;
let owner: Principal;
let app: FixtureApp;
beforeAll(async () => {
  core = await createCoreFixture();
  owner = await core.signUp();
});
afterAll(() => core.close());
beforeEach(async () => {
  app = await core.createApp(owner);
});

const listReleases = async () => (await core.services.releases.listReleases(owner, app.id, { limit: 50 })).items;
const change = (changes: Record<string, string | null>) => core.services.config.changeConfig(owner, app.id, changes);
const readConfig = () => core.services.config.readConfig(owner, app.id);
const rollBack = (release: string) => core.services.releases.rollBack(owner, app.id, release);
/** Brings the newest release live. */
async function deploy(): Promise<void> {
  const [newest] = (await core.services.releases.listDeploys(owner, app.id, { limit: 1 })).items;
  if (newest !== undefined) await runDeployJob(core.context, newest.id, never);
}
async function release(files: Record<string, string> = {}): Promise<void> {
  await app.commit(files);
  await app.push('-o', 'detach', 'main');
  await runBuildJob(core.context, (await core.latestBuild(app.id)).id, never);
  await deploy();
}

describe('a change of config', () => {
  it('is saved for the first release when there is none yet', async () => {
    await change({ A: '1' });
    expect(await readConfig()).toEqual({ A: '1' });
    expect(await listReleases()).toEqual([]);
  });

  it('creates one release of the running image, and none when nothing changes', async () => {
    await release();
    await change({ A: '1', B: '2' });
    await change({ A: '1', GONE: null });
    const [newest, first, ...rest] = await listReleases();
    expect(newest).toMatchObject({ version: 2, kind: 'config', description: 'Set A, B', imageUrl: first?.imageUrl });
    expect(rest).toEqual([]);
  });

  it('describes what was unset, also of names that every object has', async () => {
    await release();
    await change({ constructor: '1' });
    await change({ constructor: null });
    expect((await listReleases())[0]?.description).toBe('Unset constructor');
    expect(await readConfig()).toEqual({});
  });

  it('loses nothing when several come at once', async () => {
    await release();
    const names = Array.from({ length: 8 }, (_, index) => `NAME_${index}`);
    await Promise.all(names.map((name) => change({ [name]: 'x' })));
    expect(Object.keys(await readConfig())).toEqual(names);
    expect((await listReleases()).map(({ version }) => version)).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1]);
  });

  it('is refused for PORT, for invalid names and for too many bytes', async () => {
    for (const changes of [{ PORT: '1' }, { 'A-B': '1' }, { '1A': '1' }, { A: 'nul\0' }, { A: 'x'.repeat(70_000) }]) {
      await expect(change(changes)).rejects.toMatchObject({ code: 'validation_failed' });
    }
    expect(await readConfig()).toEqual({});
  });
});

describe('a rollback', () => {
  it('brings back the image and the variables of its release', async () => {
    await change({ A: 'then' });
    await release();
    await change({ A: 'now', B: 'new' });
    await release({ more: '' });
    const made = await rollBack('v1');
    await deploy();
    const releases = await listReleases();
    expect(made.release).toMatchObject({ version: 4, kind: 'rollback', description: 'Rollback to v1' });
    expect(releases[0]).toMatchObject({ current: true, imageUrl: releases.at(-1)?.imageUrl });
    expect(releases[1]?.imageUrl).not.toBe(releases[0]?.imageUrl);
    expect(await readConfig()).toEqual({ A: 'then' });
  });

  it('is refused to a release of another app, to an unknown one and to one that failed', async () => {
    await release();
    core.script = { boot: () => ({ exitCode: 3, output: [] }) };
    await release({ broken: '' });
    core.script = {};
    await expect(rollBack('2')).rejects.toMatchObject({ code: 'conflict' });
    await expect(rollBack('7')).rejects.toMatchObject({ code: 'not_found' });
    const [foreign] = await listReleases();
    app = await core.createApp(owner);
    await release();
    for (const id of [foreign?.id ?? '', newUuid(), 'latest']) {
      await expect(rollBack(id)).rejects.toMatchObject({ code: 'not_found', message: 'No such release.' });
    }
  });

  it('is refused, with what to do, when the image is gone or the variables cannot be read', async () => {
    await release();
    await core.context.db.updateTable('releases').set({ config: 'v1.sealed.otherwise' }).where('app_id', '=', app.id).execute();
    await expect(rollBack('1')).rejects.toMatchObject({ code: 'conflict' });
    await core.platform.images.deleteImages(app.id);
    await expect(rollBack('1')).rejects.toThrow('Push that commit again');
    expect(await listReleases()).toHaveLength(1);
  });
});

describe('a rollback that newer releases overtake', () => {
  it('returns its own release', async () => {
    await release();
    for (let count = 1; count <= 21; count++) await change({ COUNT: String(count) });
    // As another process would with a clock that is ahead.
    await sql`update releases set created_at = now() + interval '1 hour' where app_id = ${app.id}`.execute(core.context.db);
    expect(await rollBack('v1')).toMatchObject({ release: { version: 23, kind: 'rollback' }, deploy: { version: 23 } });
  });
});

describe('processes', () => {
  it('are one web and none of the others, until they are scaled', async () => {
    await release();
    const list = async () =>
      (await core.services.processes.listProcesses(owner, app.id)).map(({ type, quantity }) => `${type}=${quantity}`);
    expect(await list()).toEqual(['web=1', 'worker=0']);
    await core.services.processes.scaleProcess(owner, app.id, 'worker', 2);
    expect(await list()).toEqual(['web=1', 'worker=2']);
  });

  it('cannot be scaled when the app does not have them, whatever their name', async () => {
    await release();
    for (const type of ['clock', 'constructor', 'toString', '__proto__']) {
      await expect(core.services.processes.scaleProcess(owner, app.id, type, 1)).rejects.toMatchObject({
        code: 'validation_failed',
      });
    }
  });
});

describe('previews', () => {
  const previews = async () => {
    const { items } = await core.services.apps.listApps(owner, { limit: 50 });
    return items.filter(({ preview }) => preview?.parentAppId === app.id);
  };

  it('of two branches that are shortened to one name get a name each, and none of the variables', async () => {
    await change({ API_KEY: 'of production' });
    await app.commit();
    const branches = ['fix/login', 'fix-login'];
    for (const branch of ['main', ...branches]) await app.push('-o', 'detach', `main:${branch}`);
    const found = await previews();
    expect(new Set(found.map(({ name }) => name)).size).toBe(2);
    for (const { id } of found) expect(await core.services.config.readConfig(owner, id)).toEqual({});
  });

  it('of different apps that want one name at the same time get a name each', async () => {
    const one = await core.services.apps.createApp(owner, { name: `a${crypto.randomUUID().slice(0, 8)}` });
    const two = await core.services.apps.createApp(owner, { name: `${one.name}-b` });
    const push = async (name: string, branch: string) => {
      const parent = await findApp(core.context.db, name);
      if (parent === undefined) throw new Error('no parent');
      return core.context.db.transaction().execute(async (trx) => {
        const made = await ensurePreview(core.context, trx, parent, branch, owner.userId);
        // Both choose a name before either commits.
        await trx.selectFrom('apps').select('id').limit(1).execute();
        return made.name;
      });
    };
    const names = await Promise.all([push(one.name, 'b-c'), push(two.name, 'c')]);
    expect(new Set(names).size).toBe(2);
  });
});

describe('another tenant', () => {
  it('gets not_found from every method', async () => {
    await release();
    const stranger = await core.signUp();
    const { appDeletion, apps, gitSources, builds, releases, config, processes, buildCache } = core.services;
    const page = { limit: 10 };
    const calls: Promise<unknown>[] = [
      apps.readApp(stranger, app.id),
      appDeletion.deleteApp(stranger, app.id),
      appDeletion.restoreApp(stranger, app.id),
      gitSources.setGitSource(stranger, app.id, { url: null }),
      builds.startBuild(stranger, app.id, {}),
      builds.listBuilds(stranger, app.id, page),
      builds.readBuild(stranger, app.id, 'latest'),
      builds.readBuildLog(stranger, app.id, 'latest', {}),
      builds.followBuildLog(stranger, app.id, 'latest', {}, never),
      builds.cancelBuild(stranger, app.id, 'latest'),
      releases.listReleases(stranger, app.id, page),
      releases.listDeploys(stranger, app.id, page),
      releases.rollBack(stranger, app.id, 'v1'),
      config.readConfig(stranger, app.id),
      config.changeConfig(stranger, app.id, { A: '1' }),
      processes.listProcesses(stranger, app.id),
      processes.scaleProcess(stranger, app.id, 'web', 2),
      processes.restart(stranger, app.id),
      buildCache.readCache(stranger, app.id),
      buildCache.flushCache(stranger, app.id),
      core.services.pushes.openRepository(stranger, app.name, 'read'),
    ];
    for (const call of await Promise.allSettled(calls)) {
      expect(call).toMatchObject({ status: 'rejected', reason: { code: 'not_found', message: 'No such app.' } });
    }
  });
});
