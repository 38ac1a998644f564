import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { runBuildJob } from '#shared/core/builds/build-job.ts';
import { sealSourceToken } from '#shared/core/repositories/source-tokens.ts';
import { deleteSourceToken, writeSourceToken } from '#shared/core/repositories/source-tokens-store.ts';
import { resolveUrl } from '#shared/core/repositories/submodules.ts';
import { commitFiles, git } from '#shared/git/testing/git-client.ts';
import { type CoreFixture, createCoreFixture, type FixtureApp } from '#test/support/core/core-fixture.ts';
import { type GitHttpServer, startGitHttpServer } from '#test/support/servers/git-http-server.ts';

const never = new AbortController().signal;

describe('a git submodule', () => {
  let core: CoreFixture;
  let host: GitHttpServer;
  let owner: Principal;
  let app: FixtureApp;
  let built: ReadonlyMap<string, string> | undefined;
  beforeAll(async () => {
    core = await createCoreFixture();
    host = await startGitHttpServer();
    owner = await core.signUp();
    core.buildStep = async (_spec, files) => {
      built = files;
    };
  });
  afterAll(async () => {
    await host.close();
    await core.close();
  });
  beforeEach(async () => {
    app = await core.createApp(owner);
    built = undefined;
  });

  /** A repository at the git host, of one commit after another; the commit before the last is answered. */
  async function createLibrary(name: string, ...commits: readonly Record<string, string>[]): Promise<string> {
    const bare = await host.createRepository(`${name}.git`);
    await git(bare, 'config', 'uploadpack.allowAnySHA1InWant', 'true');
    const work = `${bare}.work`;
    await git(bare, 'init', '-q', '-b', 'main', work);
    const made: string[] = [];
    for (const files of commits) made.push(await commitFiles(work, files, `commit ${made.length}`));
    await git(work, 'push', '-q', bare, 'main');
    return made.at(-2) ?? made.at(-1) ?? '';
  }

  /** Into the working copy of the app, or into the directory of another repository; to be committed with the next files. */
  async function addSubmodules(directory: string, ...modules: readonly { path: string; url: string; commit: string }[]) {
    for (const { path, commit } of modules) {
      await git(directory, 'update-index', '--add', '--cacheinfo', `160000,${commit},${path}`);
      // As clone leaves it; without the directory the submodule counts as deleted.
      await mkdir(join(directory, path), { recursive: true });
    }
    return modules.map(({ path, url }) => `[submodule "${path}"]\n\tpath = ${path}\n\turl = ${url}\n`).join('');
  }

  async function build() {
    await app.push('-o', 'detach', 'main');
    const { id } = await core.latestBuild(app.id);
    await runBuildJob(core.context, id, never);
    const log = (await core.services.builds.readBuildLog(owner, app.id, id, {})).map(({ line }) => line).join('\n');
    return { ...(await core.services.builds.readBuild(owner, app.id, id)), log };
  }

  it('is built with its files, those of the commit that is pinned, and with the submodules in it', async () => {
    const deep = await createLibrary('deep', { 'deep.txt': 'deep' });
    const bare = await host.createRepository('lib.git');
    await git(bare, 'init', '-q', '-b', 'main', `${bare}.work`);
    const lib = `${bare}.work`;
    await commitFiles(lib, { 'old.txt': 'before' });
    const modules = await addSubmodules(lib, { path: 'inner', url: '../deep.git', commit: deep });
    const pinned = await commitFiles(lib, { 'lib.txt': 'pinned', '.gitmodules': modules });
    await commitFiles(lib, { 'lib.txt': 'newer' });
    await git(lib, 'push', '-q', bare, 'main');

    const url = `${host.url}/lib.git`;
    const { status, log } = await (async () => {
      await app.commit();
      await app.commit({ '.gitmodules': await addSubmodules(app.directory, { path: 'vendor/lib', url, commit: pinned }) });
      return build();
    })();
    expect(status).toBe('succeeded');
    expect(log).toContain(
      `-----> Fetching git submodules\n       vendor/lib from ${url}\n       vendor/lib/inner from ${host.url}/deep.git`,
    );
    expect(Object.fromEntries(built ?? [])).toMatchObject({
      Procfile: expect.stringContaining('web'),
      'vendor/lib/lib.txt': 'pinned',
      'vendor/lib/old.txt': 'before',
      'vendor/lib/inner/deep.txt': 'deep',
    });
    // Nothing of it becomes part of the app's repository.
    expect(await core.context.git.reader.resolveCommit(await repositoryOf(app), pinned)).toBeUndefined();
    expect(await core.context.git.sweep(0)).toBe(0);
  });

  it('that is private is fetched with the token of the source, if it is on the same host', async () => {
    const commit = await createLibrary('private', { secret: 'yes' });
    host.protect('ada:secret-token');
    const { context } = core;
    const row = await sealSourceToken(context, app.id, `${host.url}/app.git`, { user: 'ada', value: 'secret-token' });
    await app.commit();
    await app.commit({
      '.gitmodules': await addSubmodules(app.directory, { path: 'private', url: `${host.url}/private.git`, commit }),
    });
    try {
      expect((await build()).error).toContain('answered 401');
      await writeSourceToken(context.db, { ...row, origin: 'https://git.example.com' });
      await app.commit({ again: '1' });
      expect((await build()).error).toContain('answered 401');
      await writeSourceToken(context.db, row);
      await app.commit({ again: '2' });
      const { status, log } = await build();
      expect([status, log]).toEqual(['succeeded', expect.not.stringContaining('secret-token')]);
    } finally {
      host.protect(null);
      await deleteSourceToken(context.db, app.id);
    }
  });

  it('that cannot be fetched fails the build, which says what can be done', async () => {
    const commit = await createLibrary('other', { a: '1' });
    await app.commit();
    await app.commit({
      '.gitmodules': await addSubmodules(app.directory, { path: 'gone', url: `${host.url}/gone.git`, commit }),
    });
    const { status, error } = await build();
    expect(status).toBe('failed');
    expect(error).toMatch(
      /submodule gone could not be fetched: .* answered 404 .*Make it readable by everybody, or with the token.*update = none/,
    );
    expect(error).not.toContain('deploy key');
    await app.commit({
      '.gitmodules': await addSubmodules(app.directory, { path: 'gone', url: `${host.url}/other.git`, commit: 'b'.repeat(40) }),
    });
    expect((await build()).error).toContain('not our ref');
    expect(await core.context.git.sweep(0)).toBe(0);
  });

  it('that can never be fetched from here is reported, and the rest is built', async () => {
    const commit = await createLibrary('plain', { a: '1' });
    await app.commit();
    const modules = await addSubmodules(
      app.directory,
      { path: 'by-ssh', url: 'git@github.com:ada/lib.git', commit },
      { path: 'by-file', url: 'file:///etc', commit },
      { path: 'by-password', url: 'https://ada:secret@example.com/lib.git', commit },
      { path: 'off', url: `${host.url}/plain.git\n\tupdate = none`, commit },
      { path: 'relative', url: '../lib.git', commit },
      { path: 'unknown', url: '', commit },
    );
    await app.commit({ '.gitmodules': modules.replace(/\[submodule "unknown"\][^[]*/, '') });
    const { status, log } = await build();
    expect(status).toBe('succeeded');
    for (const said of [
      'by-ssh is a git submodule whose address',
      'by-file is',
      'by-password is',
      'off is',
      'relative is',
      'unknown is',
    ])
      expect(log).toContain(` !     ${said}`);
    expect(log).not.toContain('secret');
    expect([...(built?.keys() ?? [])].sort()).toEqual(['.gitmodules', 'Procfile']);
  });

  it('that is in itself ends at a depth', async () => {
    const bare = await host.createRepository('self.git');
    const work = `${bare}.work`;
    await git(bare, 'init', '-q', '-b', 'main', work);
    let commit = await commitFiles(work, { a: '1' });
    for (let i = 0; i < 6; i++)
      commit = await commitFiles(work, {
        '.gitmodules': await addSubmodules(work, { path: 'me', url: `${host.url}/self.git`, commit }),
        i: `${i}`,
      });
    await git(work, 'push', '-q', bare, 'main');
    await app.commit();
    await app.commit({ '.gitmodules': await addSubmodules(app.directory, { path: 'me', url: `${host.url}/self.git`, commit }) });
    expect((await build()).error).toContain('me/me/me/me/me is more than 4 deep');
  });

  async function repositoryOf({ id }: FixtureApp) {
    const row = await core.context.db.selectFrom('apps').select('repository_id').where('id', '=', id).executeTakeFirstOrThrow();
    return row.repository_id;
  }
});

it.each([
  ['../lib.git', 'https://host/ada/app.git', 'https://host/ada/lib.git'],
  ['../../eve/lib', 'https://host/ada/app.git/', 'https://host/eve/lib'],
  ['./sub.git', 'https://host/ada/app', 'https://host/ada/app/sub.git'],
  ['../lib.git', 'git@host:ada/app.git', 'git@host:ada/lib.git'],
  ['../../../evil.example/x', 'https://host/ada/app', undefined],
  ['../../../../x', 'https://host/ada/app', undefined],
])('%s, beside %s, is at %s', (relative, base, expected) => {
  expect(resolveUrl(relative, base)).toBe(expected);
});
