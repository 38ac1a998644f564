import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import isomorphic from 'isomorphic-git';
import http from 'isomorphic-git/http/node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPerson } from '#cli/testing/person.ts';
import { nodeApp, slowApp, unbuildableApp } from '#test/support/builds/sample-apps.ts';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser, type User, visit, type WorkingCopy } from '#test/support/platform/user.ts';
import type { RunResult } from '#test/support/run-program.ts';

let platform: RunningPlatform;
let user: User;
let copy: WorkingCopy;
beforeAll(async () => {
  platform = await startPlatform();
  user = await createUser(platform);
  const app = await user.createApp('hello');
  copy = await user.createWorkingCopy(app.push_url, { ...nodeApp('over http'), ...manyFiles(300) });
});
afterAll(async () => {
  await user?.remove();
  if (platform !== undefined) await removePlatform(platform);
});

function manyFiles(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`docs/${i}.txt`, `${i}\n`]));
}

function address(password: string, app = 'hello'): string {
  return `http://anybody:${password}@localhost:${platform.httpPort}/${app}.git`;
}

/** Stock git, asking nobody for a password. */
function git(cwd: string, ...args: string[]): Promise<RunResult> {
  return user.git(cwd, args, { env: { GIT_TERMINAL_PROMPT: '0' } });
}

describe('git over HTTP', () => {
  it('pushes with a token as the password: built, reported as live, and served', async () => {
    const pushed = await git(copy.directory, 'push', address(user.token), 'main');
    expect(pushed.output).toContain('remote: -----> Node.js app detected');
    expect(pushed.code).toBe(0);
    expect(await visit(platform, 'hello')).toEqual({ status: 200, body: 'over http' });
  });

  it('clones and fetches by protocol 0 and 2, whole and shallow, what was pushed', async () => {
    const head = (await copy.git('rev-parse', 'HEAD')).stdout.trim();
    for (const version of ['0', '2']) {
      for (const depth of [[], ['--depth=1']]) {
        const into = join(user.home, `clone-${version}-${depth.length}`);
        const cloned = await git(
          user.home,
          '-c',
          `protocol.version=${version}`,
          'clone',
          '-q',
          ...depth,
          address(user.token),
          into,
        );
        expect(cloned).toMatchObject({ code: 0 });
        expect((await git(into, 'rev-parse', 'HEAD')).stdout.trim()).toBe(head);
        expect((await git(into, 'fsck', '--full', '--strict')).code).toBe(0);
      }
    }
    // Long histories on both sides make negotiations of several requests, packed by gzip.
    const next = join(user.home, 'clone-0-0');
    for (let i = 0; i < 40; i++) await git(next, 'commit', '-q', '--allow-empty', '-m', `mine ${i}`);
    for (let i = 0; i < 3; i++) await copy.commit({ [`more-${i}.txt`]: 'more' }, `theirs ${i}`);
    expect((await git(copy.directory, 'push', '-q', address(user.token), 'main:refs/tags/more')).code).toBe(0);
    for (const version of ['0', '2']) {
      await git(next, 'tag', '-d', 'more');
      const fetched = await git(
        next,
        '-c',
        `protocol.version=${version}`,
        'fetch',
        '-q',
        'origin',
        'refs/tags/more:refs/tags/more',
      );
      expect(fetched).toMatchObject({ code: 0 });
      expect((await git(next, 'fsck', '--full', '--strict')).code).toBe(0);
    }
  });

  it('takes a pack that is larger than one request of git’s buffer, in chunks', async () => {
    await writeFile(join(copy.directory, 'large.bin'), randomBytes(6 * 1024 * 1024));
    await git(copy.directory, 'checkout', '-q', '-b', 'large');
    await copy.commit({});
    const pushed = await git(copy.directory, 'push', '-q', address(user.token), 'large:refs/tags/large');
    expect(pushed).toMatchObject({ code: 0 });
    await git(copy.directory, 'checkout', '-q', 'main');
    const into = join(user.home, 'clone-large');
    expect((await git(user.home, 'clone', '-q', '--bare', address(user.token), into)).code).toBe(0);
    expect((await git(into, 'cat-file', '-s', 'large:large.bin')).stdout.trim()).toBe(String(6 * 1024 * 1024));
    await rm(join(copy.directory, 'large.bin'), { force: true });
  });

  it('asks for a token, and takes no wrong one', async () => {
    const url = `http://localhost:${platform.httpPort}/hello.git/info/refs?service=git-upload-pack`;
    const asked = await fetch(url);
    expect(asked.status).toBe(401);
    expect(asked.headers.get('www-authenticate')).toMatch(/^Basic realm=/);
    for (const authorization of [`Basic ${btoa('x:wrong')}`, `Basic ${btoa('nothing')}`, 'Basic', 'Bearer paas_wrong']) {
      expect((await fetch(url, { headers: { authorization } })).status).toBe(401);
    }
    const refused = await git(copy.directory, 'ls-remote', address('wrong'));
    expect(refused.output).toContain('Authentication failed');
  });

  it('tells a client whose packed body is broken, and does not blame itself for it', async () => {
    for (const service of ['git-receive-pack', 'git-upload-pack']) {
      const answer = await fetch(`http://localhost:${platform.httpPort}/hello.git/${service}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${user.token}`,
          'content-encoding': 'gzip',
          'content-type': `application/x-${service}-request`,
        },
        body: '0032want, and not packed at all',
      });
      expect({ service, status: answer.status, text: await answer.text() }).toEqual({
        service,
        status: 422,
        text: expect.stringContaining('cannot be decompressed') as string,
      });
    }
  });

  it('shows an app to its own tenant only, and lets a token that may read not push', async () => {
    const other = await createUser(platform, 'eve@example.com');
    const theirs = await git(copy.directory, 'ls-remote', address(other.token));
    const missing = await git(copy.directory, 'ls-remote', address(other.token, 'nothing'));
    await other.remove();
    expect(theirs.code).not.toBe(0);
    expect(theirs.output.replaceAll('hello', 'nothing')).toBe(missing.output);

    const { token } = await user.api<{ token: string }>('POST', '/v1/auth/tokens', { name: 'ci', scope: 'read' });
    expect((await git(copy.directory, 'ls-remote', address(token))).code).toBe(0);
    const pushed = await git(copy.directory, 'push', address(token), 'main:refs/tags/never');
    expect(pushed.code).not.toBe(0);
    expect(pushed.output).toContain('403');
  });

  it('serves isomorphic-git as well: a clone, a commit, a push', async () => {
    const dir = join(user.home, 'isomorphic');
    const remote = {
      fs,
      http,
      dir,
      url: `http://localhost:${platform.httpPort}/hello.git`,
      onAuth: () => ({ password: user.token }),
    };
    await isomorphic.clone({ ...remote, ref: 'main' });
    await writeFile(join(dir, 'server.js'), nodeApp('by another client')['server.js'] ?? '');
    await isomorphic.add({ fs, dir, filepath: 'server.js' });
    const commit = await isomorphic.commit({ fs, dir, message: 'Mine', author: { name: 'Ada', email: 'ada@example.com' } });
    const pushed = await isomorphic.push({ ...remote, ref: 'main' });
    expect(pushed.refs['refs/heads/main']).toMatchObject({ ok: true });
    expect((await copy.git('ls-remote', address(user.token), 'refs/heads/main')).stdout).toContain(commit);
    expect((await visit(platform, 'hello')).body).toBe('by another client');
  });

  it('takes a folder from `paas deploy`, on a machine with neither git nor ssh', async () => {
    const person = await createPerson({ PAAS_API_URL: platform.baseUrl, PAAS_TOKEN: user.token });
    const folder = join(person.home, 'site');
    await mkdir(folder);
    // The launcher finds node here, and nothing else is installed.
    await symlink(process.execPath, join(person.home, 'node'));
    for (const tool of ['sh', 'readlink', 'dirname']) await symlink(`/bin/${tool}`, join(person.home, tool));
    const deploy = async (files: Record<string, string>) => {
      for (const [path, text] of Object.entries(files)) await writeFile(join(folder, path), text);
      return person.paas(['deploy', 'site', '-a', 'hello', '--json'], { env: { PATH: person.home } });
    };
    try {
      const done = await deploy({ ...nodeApp('from a folder'), 'secret.txt': 'x', '.gitignore': 'secret.txt\n' });
      expect([done.code, done.stderr]).toEqual([0, expect.stringContaining('-----> Node.js app detected')]);
      expect((await visit(platform, 'hello')).body).toBe('from a folder');
      const { commit } = JSON.parse(done.stdout) as { commit: string };
      expect((await copy.git('ls-remote', address(user.token), 'refs/heads/main')).stdout).toContain(commit);
      await copy.git('fetch', address(user.token), 'main');
      expect((await copy.git('ls-tree', '--name-only', commit)).stdout).not.toContain('secret.txt');
      expect((await copy.git('log', '--format=%s', '-2', commit)).stdout).toBe('Deploy site\nMine\n');

      // Node's own agents give up a connection that is silent for 5 seconds.
      const patient = await deploy(slowApp('from a slow build', 6));
      expect([patient.code, patient.stderr]).toEqual([0, expect.stringContaining('deployed')]);

      const failed = await deploy(unbuildableApp());
      expect([failed.code, failed.stderr]).toEqual([1, expect.stringMatching(/main was rejected: build failed\.\n$/)]);
      expect((await visit(platform, 'hello')).body).toBe('from a slow build');
    } finally {
      await person.remove();
    }
  });
});
