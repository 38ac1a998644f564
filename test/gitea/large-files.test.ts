import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildGitea } from '#test/gitea/build-gitea.ts';
import { type GiteaServer, startGitea } from '#test/gitea/gitea-server.ts';
import { nodeApp } from '#test/support/builds/sample-apps.ts';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser, type User, visit } from '#test/support/platform/user.ts';
import { run, runChecked } from '#test/support/run-program.ts';

const slow = { timeout: 60_000, interval: 200 };
const hasLfs = (await run('git', ['lfs', 'version'])).code === 0;
if (!hasLfs) console.warn('Skipped: git-lfs is not in the PATH. On Debian: apt-get install git-lfs');

/** Answers the contents of the large file of the app, and of that of its submodule. */
const server = `
const { readFileSync } = require('node:fs');
require('node:http').createServer((request, response) => {
  const sizes = ['picture.bin', 'lib/sound.bin'].map((path) => readFileSync(path).length);
  response.end([...sizes, readFileSync('lib/note.txt', 'utf8')].join(' '));
}).listen(process.env.PORT);
`;

describe.skipIf(!hasLfs)('a private repository of a real Gitea with Git LFS and a private submodule', () => {
  let gitea: GiteaServer;
  let platform: RunningPlatform;
  let user: User;
  let directory: string;
  let token: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'paas-gitea-lfs-'));
    gitea = await startGitea(await buildGitea(process.env));
    platform = await startPlatform({ env: { PAAS_ALLOW_PRIVATE_SOURCES: 'true' } });
    user = await createUser(platform);
    for (const name of ['site', 'library'])
      await gitea.api('POST', '/user/repos', { name, private: true, default_branch: 'main' });
    const body = { name: 'paas', scopes: ['read:repository'] };
    token = (await gitea.api<{ sha1: string }>('POST', '/users/ann/tokens', body)).sha1;
  });
  afterAll(async () => {
    await user?.remove();
    if (platform !== undefined) await removePlatform(platform);
    await gitea?.remove();
    await rm(directory, { recursive: true, force: true });
  });

  /** A commit in a new working copy, pushed with its large files by git-lfs itself. */
  async function publish(name: string, files: Record<string, string | Uint8Array>, prepare?: (git: Git) => Promise<unknown>) {
    const work = join(directory, name);
    const git: Git = (...args) =>
      runChecked('git', ['-C', work, '-c', 'user.name=Ann', '-c', 'user.email=ann@example.com', ...args], {
        env: { HOME: directory },
      });
    await runChecked('git', ['init', '-q', '-b', 'main', work]);
    await git('lfs', 'install', '--local');
    await git('lfs', 'track', '*.bin');
    for (const [path, content] of Object.entries(files)) await writeFile(join(work, path), content);
    await prepare?.(git);
    await git('add', '.');
    await git('commit', '-q', '-m', 'First');
    await git('remote', 'add', 'origin', `${gitea.urlWithPassword}/ann/${name}.git`);
    await git('push', '-q', 'origin', 'main');
    return { git, work, commit: (await git('rev-parse', 'HEAD')).stdout.trim() };
  }
  type Git = (...args: string[]) => Promise<{ stdout: string }>;

  const latestBuild = () => user.api<{ status: string; error: string | null }>('GET', '/v1/apps/site/builds/latest');

  it('is built with the contents of both, by the token of the source', async () => {
    const sound = new Uint8Array(300_000).map((_, i) => i % 251);
    await publish('library', { 'sound.bin': sound, 'note.txt': 'from the submodule' });
    const app = nodeApp('large');
    const picture = new Uint8Array(2_000_000).map((_, i) => (i * 7) % 253);
    const files = { ...Object.fromEntries(Object.entries(app)), 'server.js': server, 'picture.bin': picture };
    const site = await publish('site', { ...files, Procfile: 'web: node server.js\n' }, (git) =>
      git('submodule', 'add', '-q', `${gitea.urlWithPassword}/ann/library.git`, 'lib').then(() =>
        git('config', '-f', '.gitmodules', 'submodule.lib.url', '../library.git'),
      ),
    );
    expect((await site.git('show', 'HEAD:picture.bin')).stdout).toContain('oid sha256:');
    await user.createApp('site');
    await user.api('PUT', '/v1/apps/site/git', { url: `${gitea.url}/ann/site.git`, token });
    await user.api('POST', '/v1/apps/site/builds', {});
    await expect.poll(async () => (await latestBuild()).status, slow).toMatch(/succeeded|failed/);
    const lines = await user.api<{ line: string }[]>('GET', '/v1/apps/site/builds/latest/logs');
    const log = lines.map(({ line }) => line).join('\n');
    expect([(await latestBuild()).error, log]).toEqual([null, expect.stringContaining('Fetching 1 large file (Git LFS)')]);
    expect(log).not.toContain(token);
    await expect.poll(async () => (await visit(platform, 'site')).body, slow).toBe('2000000 300000 from the submodule');
  });

  it('is not built when a content was not sent, and says which and how to send it', async () => {
    const { git, work } = { git: runChecked, work: join(directory, 'site') };
    await writeFile(join(work, 'lost.bin'), 'a content that stays here');
    const at = ['-C', work, '-c', 'user.name=Ann', '-c', 'user.email=ann@example.com'];
    await git('git', [...at, 'add', '.']);
    await git('git', [...at, 'commit', '-q', '-m', 'With a large file']);
    // Gitea refuses a push by git-lfs without the content; one without the hook is accepted.
    await git('git', [...at, 'push', '-q', '--no-verify', 'origin', 'main']);
    await user.api('POST', '/v1/apps/site/builds', {});
    await expect
      .poll(async () => (await latestBuild()).error, slow)
      .toMatch(/^lost\.bin is stored with Git LFS, .* git lfs push --all/);
    expect((await visit(platform, 'site')).body).toBe('2000000 300000 from the submodule');
  });
});
