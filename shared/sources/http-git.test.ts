import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { commitFiles, git } from '#shared/git/testing/git-client.ts';
import { createGitFixture, type GitFixture } from '#shared/git/testing/git-fixture.ts';
import type { ObjectId } from '#shared/ids.ts';
import { createOutsideSourceHosts } from '#shared/sources/outside-source-hosts.ts';
import { SourceUnavailable } from '#shared/sources/source-unavailable.ts';
import { startFileServer } from '#test/support/servers/file-server.ts';
import { type GitHttpServer, startGitHttpServer } from '#test/support/servers/git-http-server.ts';

let fixture: GitFixture;
let host: GitHttpServer;
let tip: ObjectId;
const signal = new AbortController().signal;
beforeAll(async () => {
  [fixture, host] = await Promise.all([createGitFixture('postgres'), startGitHttpServer()]);
  const bare = await host.createRepository('hello.git');
  const work = `${bare}.work`;
  await git(bare, 'init', '-q', '-b', 'main', work);
  for (const a of ['1', '2', '3']) tip = (await commitFiles(work, { a, [`dir/${a}`]: a })) as ObjectId;
  await git(work, 'push', '-q', bare, 'main');
});
afterAll(async () => {
  await host.close();
  await fixture.close();
  expect(fixture.logged).toEqual([]);
});

async function fetchPack(options: { withoutHistory?: true }): Promise<Buffer> {
  const hosts = createOutsideSourceHosts({ allowPrivate: true, seconds: 20 });
  const asked = { url: `${host.url}/hello.git`, ref: 'refs/heads/main', commit: undefined, haves: [], key: undefined, signal };
  const { commit, pack } = await hosts.fetchSource({ ...asked, ...options });
  expect(commit).toBe(tip);
  return Buffer.concat(await Array.fromAsync(pack));
}

it('the branches of a repository are listed, with the one that HEAD names', async () => {
  const hosts = createOutsideSourceHosts({ allowPrivate: true, seconds: 20 });
  const bare = await host.createRepository('branches.git');
  const list = async (path: string) => {
    const { branches, defaultBranch } = await hosts.listTips({ url: `${host.url}${path}`, key: undefined, signal });
    return { branches: Object.fromEntries(branches), defaultBranch };
  };
  expect((await list('/branches.git')).branches).toEqual({});
  await git(
    `${bare}/../hello.git.work`,
    'push',
    '-q',
    bare,
    'main:refs/heads/trunk',
    'main~1:refs/heads/feature/x',
    'main:refs/tags/v1',
  );
  await git(bare, 'symbolic-ref', 'HEAD', 'refs/heads/trunk');
  const before = (await git(bare, 'rev-parse', 'feature/x')).trim();
  const expected = { branches: { trunk: tip, 'feature/x': before }, defaultBranch: 'trunk' };
  expect(await list('/branches.git')).toEqual(expected);
  expect(await list('/branches/')).toEqual(expected);
  await expect(list('/nobody.git')).rejects.toMatchObject({ code: 'validation_failed', message: expect.stringContaining('404') });
});

describe('a token', () => {
  const token = { user: 'ada', value: 'secret-token' };
  const hosts = createOutsideSourceHosts({ allowPrivate: true, seconds: 20 });
  afterEach(() => host.protect(null));

  it('opens a private repository, whose branches and commits nobody gets without it', async () => {
    host.protect('ada:secret-token');
    const url = `${host.url}/hello.git`;
    const asked = { url, ref: 'refs/heads/main', commit: undefined, haves: [], signal };
    expect((await hosts.listTips({ url, token, signal })).branches.get('main')).toBe(tip);
    const { commit, pack } = await hosts.fetchSource({ ...asked, token });
    expect([
      commit,
      Buffer.concat(await Array.fromAsync(pack))
        .subarray(0, 4)
        .toString(),
    ]).toEqual([tip, 'PACK']);
    for (const wrong of [undefined, { ...token, value: 'another' }]) {
      await expect(hosts.listTips({ url, token: wrong, signal })).rejects.toThrow('answered 401');
      await expect(hosts.fetchSource({ ...asked, token: wrong })).rejects.toThrow('paas git:source:set URL --token');
    }
  });

  it('is not sent to where the host redirects, and is in no message', async () => {
    const seen: (string | undefined)[] = [];
    const other = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(404).end();
    });
    const first = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(302, { location: `${addressOf(other)}${request.url}` }).end();
    });
    for (const server of [other, first]) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `${addressOf(first)}/a.git`;
    const failed = await hosts.listTips({ url, token, signal }).catch((error: Error) => error.message);
    await expect(hosts.fetchSource({ url, ref: 'refs/heads/main', commit: undefined, haves: [], token, signal })).rejects.toThrow(
      '404',
    );
    expect(seen).toEqual(['Basic YWRhOnNlY3JldC10b2tlbg==', undefined, 'Basic YWRhOnNlY3JldC10b2tlbg==', undefined]);
    expect(failed).not.toMatch(/secret-token|YWRh/);
    for (const server of [other, first]) server.close();
  });
});

function addressOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it('a host that does not answer is unavailable, and one without git is not', async () => {
  const closed = await startGitHttpServer();
  await closed.close();
  const hosts = createOutsideSourceHosts({ allowPrivate: true, seconds: 20 });
  const ask = (url: string) => hosts.listTips({ url, key: undefined, signal });
  await expect(ask(`${closed.url}/a.git`)).rejects.toBeInstanceOf(SourceUnavailable);
  const files = await startFileServer();
  files.files.set('/a.git/info/refs', Buffer.from('hello'));
  await expect(ask(`${files.url}/a.git`)).rejects.toThrow('has no git repository');
  await files.close();
});

it('an address that may not be reached is refused before it is stored', async () => {
  const hosts = createOutsideSourceHosts({ allowPrivate: false, seconds: 20 });
  await expect(hosts.checkAddress('http://git.example.com/a.git')).rejects.toThrow('use https');
  for (const url of ['https://10.0.0.1/a.git', 'https://localhost/a.git', 'git@127.0.0.1:a.git', 'ssh://git@[::1]/a.git'])
    await expect(hosts.checkAddress(url)).rejects.toThrow('private network');
  await hosts.checkAddress('https://no-such-name.invalid/a.git');
});

async function* inPieces(pack: Buffer): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < pack.length; at += 100) yield pack.subarray(at, at + 100);
}

it('a commit comes without its history when only its files are wanted', async () => {
  const objects = async (options: { withoutHistory?: true }): Promise<number> => (await fetchPack(options)).readUInt32BE(8);
  // The last commit, two trees, and four files of three contents; else two more commits with two trees each.
  expect(await objects({ withoutHistory: true })).toBe(6);
  expect(await objects({})).toBe(12);
});

it('a commit without its history is read, and can become no part of a repository', async () => {
  const { storage } = fixture;
  const repository = fixture.newRepository();
  const pack = await fetchPack({ withoutHistory: true });
  await expect(storage.stagePack(repository, inPieces(pack), signal)).rejects.toThrow(
    'is needed, but was neither sent nor is in the repository',
  );
  const snapshot = await storage.takeSnapshot(repository, tip, inPieces(pack), signal);
  const files: Record<string, string> = {};
  for await (const { path, read } of snapshot.readTree()) files[path] = Buffer.from(await read()).toString();
  expect(files).toEqual({ a: '3', 'dir/1': '1', 'dir/2': '2', 'dir/3': '3' });
  expect(await storage.reader.resolveCommit(repository, tip)).toBeUndefined();
  await snapshot.discard();
  expect(await fixture.listQuarantines(repository)).toEqual([]);
});

it('a snapshot of which something is missing, or that is of another commit, is refused and nothing of it kept', async () => {
  const repository = fixture.newRepository();
  const pack = await fetchPack({ withoutHistory: true });
  const take = (bytes: Buffer, commit = tip) => fixture.storage.takeSnapshot(repository, commit, inPieces(bytes), signal);
  await expect(take(pack, 'b'.repeat(40) as ObjectId)).rejects.toThrow('did not send the requested commit');
  await expect(take(pack.subarray(0, -30))).rejects.toThrow('The repository cannot be used');
  await expect(take(pack.fill(0xff, 30, 40))).rejects.toThrow('The repository cannot be used');
  expect(await fixture.listQuarantines(repository)).toEqual([]);
});
