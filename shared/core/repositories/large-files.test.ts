import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { runBuildJob } from '#shared/core/builds/build-job.ts';
import { readLfsUrl } from '#shared/core/repositories/large-files.ts';
import { commitFiles, git } from '#shared/git/testing/git-client.ts';
import { limits } from '#shared/limits.ts';
import { type CoreFixture, createCoreFixture, type FixtureApp } from '#test/support/core/core-fixture.ts';
import { type GitHttpServer, startGitHttpServer } from '#test/support/servers/git-http-server.ts';

const never = new AbortController().signal;
const attributes = '*.bin filter=lfs diff=lfs merge=lfs -text\n';
const picture = 'a large picture '.repeat(10_000);

function pointerOf(content: string, size = content.length): string {
  const oid = createHash('sha256').update(content).digest('hex');
  return `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${size}\n`;
}

describe('a file of Git LFS', () => {
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
    host.protect(null);
    host.largeFiles.clear();
    host.addLargeFile(picture);
  });

  /** A repository at the git host, of one commit. */
  async function createSource(name: string, files: Record<string, string>): Promise<{ url: string; commit: string }> {
    const bare = await host.createRepository(`${name}.git`);
    const work = `${bare}.work`;
    await git(bare, 'init', '-q', '-b', 'main', work);
    await git(bare, 'config', 'uploadpack.allowAnySHA1InWant', 'true');
    const commit = await commitFiles(work, files);
    await git(work, 'push', '-q', bare, 'main');
    return { url: `${host.url}/${name}.git`, commit };
  }

  async function build() {
    const { id } = await core.services.builds.startBuild(owner, app.id, {});
    await runBuildJob(core.context, id, never);
    const log = (await core.services.builds.readBuildLog(owner, app.id, id, {})).map(({ line }) => line).join('\n');
    return { ...(await core.services.builds.readBuild(owner, app.id, id)), log };
  }

  const web = { Procfile: 'web: run' };

  it('is fetched from the host of the source, also in a folder and under two names', async () => {
    const files = { 'assets/a.bin': pointerOf(picture), 'assets/b.bin': pointerOf(picture), 'note.txt': 'a note' };
    const { url } = await createSource('plain', { ...web, ...files, '.gitattributes': attributes });
    await core.services.gitSources.setGitSource(owner, app.id, { url });
    const { status, log } = await build();
    expect([status, log]).toEqual([
      'succeeded',
      expect.stringContaining('-----> Fetching 2 large files (Git LFS)\n       0.2 MiB'),
    ]);
    expect(log).not.toContain('pointer');
    expect(Object.fromEntries(built ?? [])).toMatchObject({
      'assets/a.bin': picture,
      'assets/b.bin': picture,
      'note.txt': 'a note',
    });
  });

  it('is fetched with the token of the source, which is in no log', async () => {
    const { url } = await createSource('private', { ...web, 'a.bin': pointerOf(picture), '.gitattributes': attributes });
    host.protect('ada:a-secret-token');
    await core.services.gitSources.setGitSource(owner, app.id, { url, branch: 'main', token: 'ada:a-secret-token' });
    const { status, log } = await build();
    expect(status).toBe('succeeded');
    expect(log).not.toContain('a-secret-token');
    expect(built?.get('a.bin')).toBe(picture);
  });

  it('of a submodule is fetched from the host of the submodule', async () => {
    const library = await createSource('library', { 'a.bin': pointerOf(picture), '.gitattributes': attributes });
    await git(app.directory, 'update-index', '--add', '--cacheinfo', `160000,${library.commit},lib`);
    const modules = `[submodule "lib"]\n\tpath = lib\n\turl = ${library.url}\n`;
    await app.commit({ '.gitmodules': modules });
    await git(app.directory, 'update-index', '--add', '--cacheinfo', `160000,${library.commit},lib`);
    await git(app.directory, 'commit', '-q', '--allow-empty', '-m', 'with the submodule');
    await app.push('-o', 'detach', 'main');
    const { id } = await core.latestBuild(app.id);
    await runBuildJob(core.context, id, never);
    expect(built?.get('lib/a.bin')).toBe(picture);
  });

  it('that the host does not have fails the build, with its path and what to do', async () => {
    const { url } = await createSource('missing', { ...web, 'x/lost.bin': pointerOf('lost'), '.gitattributes': attributes });
    await core.services.gitSources.setGitSource(owner, app.id, { url });
    const { status, error } = await build();
    expect([status, error]).toEqual([
      'failed',
      expect.stringMatching(/^x\/lost\.bin is stored with Git LFS, .* git lfs push --all ORIGIN\.$/),
    ]);
  });

  it('beyond the limit is refused before anything is fetched', async () => {
    const tooLarge = pointerOf('large', limits.largeFiles.bytes + 1);
    const { url } = await createSource('huge', { ...web, 'huge.bin': tooLarge, '.gitattributes': attributes });
    await core.services.gitSources.setGitSource(owner, app.id, { url });
    expect((await build()).error).toMatch(/together 1025 MiB, and a build may have 1024 MiB\. The largest is huge\.bin/);
  });

  it('is left as it is where no .gitattributes names Git LFS', async () => {
    const { url } = await createSource('text', {
      ...web,
      'a.bin': pointerOf(picture),
      '.gitattributes': '# filter=lfs\n*.bin binary\n',
    });
    await core.services.gitSources.setGitSource(owner, app.id, { url });
    const { status, log } = await build();
    expect([status, log]).toEqual(['succeeded', expect.stringContaining('a.bin is a git-lfs pointer')]);
    expect(built?.get('a.bin')).toBe(pointerOf(picture));
  });
});

it.each([
  ['[lfs]\n\turl = https://lfs.example.com/a\n', 'https://lfs.example.com/a'],
  ['[core]\n\turl = https://other.example.com\n[LFS]\n  URL = "https://lfs.example.com/a" # ours\n', 'https://lfs.example.com/a'],
  ['[remote "lfs"]\n\turl = https://other.example.com\n', undefined],
  ['[lfs]\n\tfetchexclude = *\n', undefined],
  ['', undefined],
])('reads the address of the server in .lfsconfig: %j', (text, url) => {
  expect(readLfsUrl(text)).toBe(url);
});
