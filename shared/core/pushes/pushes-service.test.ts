import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { readAppById } from '#shared/core/apps/apps-store.ts';
import { ensurePreview } from '#shared/core/apps/previews.ts';
import { listRetainedCommits } from '#shared/core/builds/retained-commits.ts';
import type { RepositoryId } from '#shared/ids.ts';
import { type CoreFixture, createCoreFixture, type FixtureApp } from '#test/support/core/core-fixture.ts';

const patience = { timeout: 10_000 };

describe('a push', () => {
  let core: CoreFixture;
  let owner: Principal;
  let app: FixtureApp;
  beforeAll(async () => {
    core = await createCoreFixture();
    await core.startWorker();
    owner = await core.signUp();
  });
  afterAll(() => core.close());
  beforeEach(async () => {
    core.buildStep = async () => undefined;
    core.script = {};
    app = await core.createApp(owner);
    await app.commit();
  });

  /** What git sees: `refs/heads/main <oid>` by name. */
  const refs = async (): Promise<Record<string, string>> => {
    const { repository_id } = await core.context.db
      .selectFrom('apps')
      .select('repository_id')
      .where('id', '=', app.id)
      .executeTakeFirstOrThrow();
    const listed = await core.context.git.refs.listRefs(repository_id);
    return Object.fromEntries(listed.map(({ name, oid }) => [name, oid]));
  };
  const head = (): Promise<string> => app.git('rev-parse', 'HEAD');
  /** Builds of what contains the file wait until they are let go. */
  const holdBuildsWith = (path: string): { begun: Promise<void>; letGo(): void } => {
    const begun = Promise.withResolvers<void>();
    const paused = Promise.withResolvers<void>();
    core.buildStep = async (_spec, files) => {
      if (!files.has(path)) return;
      begun.resolve();
      await paused.promise;
    };
    return { begun: begun.promise, letGo: paused.resolve };
  };

  it('moves its branch when the release is live, and prints every line of the build', async () => {
    core.buildStep = async (_spec, _files, line) => {
      for (let count = 1; count <= 2500; count += 1) line(`line ${count} of 2500`);
    };
    const { code, stderr } = await app.push('main');
    expect(code).toBe(0);
    const lines = [...stderr.matchAll(/line (\d+) of 2500/g)].map((match) => Number(match[1]));
    expect(lines).toEqual(Array.from({ length: 2500 }, (_, index) => index + 1));
    expect(stderr).toContain('deployed');
    expect(await refs()).toEqual({ 'refs/heads/main': await head() });
  });

  it('leaves its branch where it was when the build fails, and can be pushed again as it is', async () => {
    core.buildStep = async () => 'It does not compile.';
    const { code, stderr } = await app.push('main');
    expect(code).not.toBe(0);
    expect(stderr).toContain('It does not compile.');
    expect(stderr).toContain('(build failed)');
    expect(await refs()).toEqual({});
    core.buildStep = async () => undefined;
    expect((await app.push('main')).code).toBe(0);
    expect(await refs()).toEqual({ 'refs/heads/main': await head() });
  });

  it('still moves its branch when an older push got there while it waited', async () => {
    const first = holdBuildsWith('first');
    await app.commit({ first: '' });
    const older = app.push('main');
    await first.begun;
    await app.commit({ second: '' });
    const newer = app.push('main');
    await expect.poll(async () => (await core.latestBuild(app.id)).status, patience).toBe('queued');
    first.letGo();
    expect((await older).code).toBe(0);
    expect((await newer).stderr).toContain('main -> main');
    expect(await refs()).toEqual({ 'refs/heads/main': await head() });
  });

  it('is asked to fetch first when another history was pushed while it waited', async () => {
    const first = holdBuildsWith('first');
    await app.commit({ first: '' });
    const one = await head();
    const older = app.push('main');
    await first.begun;
    await app.git('reset', '-q', '--hard', 'HEAD~1');
    await app.commit({ other: '' });
    const newer = app.push('main');
    await expect.poll(async () => (await core.latestBuild(app.id)).status, patience).toBe('queued');
    const second = holdBuildsWith('other');
    first.letGo();
    expect((await older).code).toBe(0);
    second.letGo();
    const refused = await newer;
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain('(fetch first)');
    expect(await refs()).toEqual({ 'refs/heads/main': one });
  });

  it('is superseded by a newer one while it waits, which alone is built', async () => {
    const first = holdBuildsWith('first');
    await app.commit({ first: '' });
    const pushes = [app.push('main')];
    await first.begun;
    for (const name of ['second', 'third']) {
      await app.commit({ [name]: '' });
      const count = pushes.push(app.push('main'));
      await expect
        .poll(async () => (await core.services.builds.listBuilds(owner, app.id, { limit: 50 })).items.length, patience)
        .toBe(count);
    }
    first.letGo();
    const [, second, third] = await Promise.all(pushes);
    expect(second?.stderr).toContain('(superseded by a newer push)');
    expect(third?.code).toBe(0);
    expect(await refs()).toEqual({ 'refs/heads/main': await head() });
  });

  it('with "-o detach" moves its branch at once, also when the build then fails', async () => {
    core.buildStep = async () => 'It does not compile.';
    expect((await app.push('-o', 'detach', 'main')).code).toBe(0);
    expect(await refs()).toEqual({ 'refs/heads/main': await head() });
    await expect.poll(async () => (await core.latestBuild(app.id)).status, patience).toBe('failed');
  });

  describe('whose release does not go live', () => {
    let live: string;
    beforeEach(async () => {
      await app.push('main');
      live = await head();
    });
    const refuse: Record<string, () => Promise<void>> = {
      'release command failed': async () => {
        await app.commit({ Procfile: 'web: serve\nrelease: migrate\n' });
        core.script = { run: async () => 7 };
      },
      'deploy failed': async () => {
        await app.commit({ more: '' });
        core.script = { boot: () => ({ exitCode: 3, output: ['no such module'] }) };
      },
    };

    it.each(Object.keys(refuse))('is rejected with "%s", and can be pushed again as it is', async (cause) => {
      await refuse[cause]?.();
      const { code, stderr } = await app.push('main');
      expect(code).toBe(1);
      expect(stderr).toContain(`! [remote rejected] main -> main (${cause})`);
      expect(await refs()).toEqual({ 'refs/heads/main': live });
      core.script = {};
      expect((await app.push('main')).code).toBe(0);
      expect(await refs()).toEqual({ 'refs/heads/main': await head() });
    });

    it('is rejected with "canary aborted" when visitors get errors', async () => {
      const host = core.context.addresses.appHost(app.name);
      const { settings } = core.context;
      core.context.settings = { ...settings, canaryStepSeconds: 60 };
      let count = 0;
      const visits = setInterval(() => {
        count += 1;
        const request = core.platform.router.beginRequest(host);
        request?.end({ status: request.releaseVersion > 1 ? 500 : 200 });
      }, 1);
      try {
        await expect.poll(() => count, patience).toBeGreaterThan(200);
        await app.commit({ more: '' });
        const { code, stderr } = await app.push('main');
        expect(code).toBe(1);
        expect(stderr).toContain('(canary aborted)');
        expect(await refs()).toEqual({ 'refs/heads/main': live });
      } finally {
        clearInterval(visits);
        core.context.settings = settings;
      }
    });

    it('is rejected for the preview of another branch too', async () => {
      await refuse['deploy failed']?.();
      expect((await app.push('main:feature')).stderr).toContain('main -> feature (deploy failed)');
      expect(await refs()).toEqual({ 'refs/heads/main': live });
    });
  });

  describe('while its release is rolled out', () => {
    let begun: Promise<void>;
    let live: string;
    let end: (exitCode: number) => void;
    beforeEach(async () => {
      await app.push('main');
      live = await head();
      const started = Promise.withResolvers<void>();
      const held = Promise.withResolvers<number>();
      begun = started.promise;
      end = held.resolve;
      let commands = 0;
      core.script = {
        run: async () => {
          commands += 1;
          started.resolve();
          return commands === 1 ? held.promise : 0;
        },
      };
      await app.commit({ Procfile: 'web: serve\nrelease: migrate\n' });
    });

    it('has not moved its branch, and its objects are kept', async () => {
      await app.git('tag', '-a', '-m', 'one', 'v1.0');
      const pushing = app.push('--atomic', 'main', 'v1.0');
      await begun;
      expect(await refs()).toEqual({ 'refs/heads/main': live });
      const { repository_id } = (await readAppById(core.context.db, app.id)) ?? {};
      const tag = await app.git('rev-parse', 'v1.0');
      expect(tag).not.toBe(await head());
      expect(await listRetainedCommits(core.context.db, repository_id as RepositoryId)).toEqual(
        expect.arrayContaining([tag, await head()]),
      );
      end(0);
      expect((await pushing).code).toBe(0);
      expect(await refs()).toEqual({ 'refs/heads/main': await head(), 'refs/tags/v1.0': tag });
    });

    it('moves its branch by a change of config that waits behind it, when that alone goes live', async () => {
      const pushing = app.push('main');
      await begun;
      await core.services.config.changeConfig(owner, app.id, { A: '1' });
      end(7);
      expect((await pushing).stderr).toContain('(release command failed)');
      await expect.poll(refs, patience).toEqual({ 'refs/heads/main': await head() });
      expect((await core.services.apps.readApp(owner, app.id)).currentRelease?.version).toBe(3);
    });

    it('is told to fetch first, and not rolled out, when a push that does not wait takes the branch', async () => {
      const pushing = app.push('main');
      await begun;
      await app.git('reset', '-q', '--hard', 'HEAD~1');
      await app.commit({ other: '' });
      expect((await app.push('-o', 'detach', 'main')).code).toBe(0);
      end(0);
      expect((await pushing).stderr).toContain('(fetch first)');
      expect(await refs()).toEqual({ 'refs/heads/main': await head() });
      const version = async () => (await core.services.apps.readApp(owner, app.id)).currentRelease?.version;
      await expect.poll(version, patience).toBe(3);
    });
  });

  it('whose first release failed goes live by a restart, and moves its branch then', async () => {
    core.script = { boot: () => ({ exitCode: 3, output: ['the database is away'] }) };
    expect((await app.push('main')).code).toBe(1);
    core.script = {};
    await core.services.processes.restart(owner, app.id);
    await expect.poll(refs, patience).toEqual({ 'refs/heads/main': await head() });
    const [newest] = (await core.services.releases.listReleases(owner, app.id, { limit: 1 })).items;
    expect(newest).toMatchObject({ version: 2, description: 'Restart v1', current: true });
  });

  it('whose first release failed goes live by a change of config, and moves its branch then', async () => {
    core.script = { boot: () => ({ exitCode: 3, output: ['DATABASE_URL is missing'] }) };
    expect((await app.push('main')).code).toBe(1);
    expect(await refs()).toEqual({});
    core.script = {};
    await core.services.config.changeConfig(owner, app.id, { DATABASE_URL: 'postgres://…' });
    await expect.poll(refs, patience).toEqual({ 'refs/heads/main': await head() });
    expect((await core.services.apps.readApp(owner, app.id)).currentRelease?.version).toBe(2);
  });

  it('can rewrite the branch by force', async () => {
    await app.commit({ first: '' });
    await app.push('main');
    await app.git('reset', '-q', '--hard', 'HEAD~1');
    await app.commit({ other: '' });
    expect((await app.push('main')).code).not.toBe(0);
    expect((await app.push('--force', 'main')).code).toBe(0);
    expect(await refs()).toEqual({ 'refs/heads/main': await head() });
  });

  it('takes the branch that is pushed first as that of the app, and another branch after it as a preview', async () => {
    const { code, stderr } = await app.push('main:master');
    expect(code).toBe(0);
    expect(stderr).toContain(`master is the branch of ${app.name} from now on`);
    expect(await core.services.apps.readApp(owner, app.id)).toMatchObject({ branch: 'master', currentRelease: { version: 1 } });
    expect((await app.push('main')).stderr).toContain('building the preview');
  });

  it('leaves the branch of an app that somebody has chosen, or that has a build already', async () => {
    core.buildStep = async () => 'It does not compile.';
    await app.push('main');
    await app.push('main:master');
    expect((await core.services.apps.readApp(owner, app.id)).branch).toBe('main');
    const chosen = await core.createApp(owner);
    await core.services.gitSources.setGitSource(owner, chosen.id, { url: null, branch: 'trunk' });
    await chosen.commit();
    await chosen.push('main:master');
    expect((await core.services.apps.readApp(owner, chosen.id)).branch).toBe('trunk');
  });

  it('cannot delete the branch that is deployed', async () => {
    await app.push('main');
    const { code, stderr } = await app.push('--delete', 'main');
    expect(code).not.toBe(0);
    expect(stderr).toContain('cannot be deleted');
    expect(Object.keys(await refs())).toEqual(['refs/heads/main']);
  });

  it('to a deleted app is one to an app that never was', async () => {
    await core.services.appDeletion.deleteApp(owner, app.id);
    for (const access of ['read', 'write'] as const) {
      const opened = core.services.pushes.openRepository(owner, app.name, access);
      await expect(opened).rejects.toMatchObject({ code: 'not_found', message: 'No such app.' });
    }
    const { code, stderr } = await app.push('paas', 'main');
    expect(code).not.toBe(0);
    expect(stderr).not.toContain('main -> main');
  });

  it('stores tags without building', async () => {
    await app.git('tag', 'v1.0');
    expect((await app.push('v1.0')).code).toBe(0);
    expect(await refs()).toEqual({ 'refs/tags/v1.0': await head() });
    expect((await core.services.builds.listBuilds(owner, app.id, { limit: 50 })).items).toEqual([]);
  });

  it('that is atomic moves a tag only with the branch that is built', async () => {
    await app.git('tag', 'v1.0');
    core.buildStep = async () => 'It does not compile.';
    const failed = await app.push('--atomic', 'main', 'v1.0');
    expect(failed.code).not.toBe(0);
    expect(await refs()).toEqual({});
    core.buildStep = async () => undefined;
    expect((await app.push('--atomic', 'main', 'v1.0')).code).toBe(0);
    expect(await refs()).toEqual({ 'refs/heads/main': await head(), 'refs/tags/v1.0': await head() });
  });

  it('that is atomic is refused whole when more than one branch would be built', async () => {
    await app.git('branch', 'feature');
    const { code, stderr } = await app.push('--atomic', 'main', 'feature');
    expect(code).not.toBe(0);
    expect(stderr).toContain('one branch');
    expect(await refs()).toEqual({});
    expect((await core.services.builds.listBuilds(owner, app.id, { limit: 50 })).items).toEqual([]);
  });

  describe('to a branch while the app has as many previews as it can have', () => {
    const branches = Array.from({ length: 10 }, (_, index) => `b${index}`);
    beforeEach(async () => {
      await core.context.db.transaction().execute(async (trx) => {
        const parent = await readAppById(trx, app.id);
        if (parent === undefined) throw new Error('no parent');
        for (const branch of branches) await ensurePreview(core.context, trx, parent, branch, owner.userId);
      });
    });
    const countPreviews = async (): Promise<number> =>
      (
        await core.context.db
          .selectFrom('apps')
          .select('id')
          .where('parent_app_id', '=', app.id)
          .where('deleted_at', 'is', null)
          .execute()
      ).length;

    it('is stored, starts no preview, and says why', async () => {
      const { code, stderr } = await app.push('main:one-more');
      expect(code).toBe(0);
      expect(stderr).toContain('The app has 10 previews, the most it can have. Delete a branch to make room for one-more.');
      expect(await refs()).toEqual({ 'refs/heads/one-more': await head() });
      expect(await countPreviews()).toBe(10);
    });

    it('is built where the branch has a preview, or a deleted branch makes room', async () => {
      expect((await app.push('main:b3')).stderr).toContain('building the preview');
      await app.push('-o', 'detach', 'main:b4');
      const { code, stderr } = await app.push(':b4', 'main:one-more');
      expect(code).toBe(0);
      expect(stderr).toContain('building the preview');
      expect(await countPreviews()).toBe(10);
    });

    it('is stored at once by an atomic push, as nothing is built', async () => {
      await app.git('tag', 'v1.0');
      const { code, stderr } = await app.push('--atomic', 'main:one-more', 'v1.0');
      expect(code).toBe(0);
      expect(stderr).toContain('The app has 10 previews');
      expect(await refs()).toEqual({ 'refs/heads/one-more': await head(), 'refs/tags/v1.0': await head() });
    });
  });
});
