import { createHash } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer, json } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { guardedRequest } from '#shared/sources/guarded-request.ts';
import { askForDownloads } from '#shared/sources/lfs-batch.ts';
import { createOutsideSourceHosts } from '#shared/sources/outside-source-hosts.ts';
import type { LargeFile, SourceToken } from '#shared/sources/source-hosts.ts';

const token: SourceToken = { user: 'ada', value: 'secret-token' };
const basic = `Basic ${Buffer.from('ada:secret-token').toString('base64')}`;
const sha256 = (content: string): string => createHash('sha256').update(content).digest('hex');
const fileOf = (path: string, content: string): LargeFile => ({ path, oid: sha256(content), size: Buffer.byteLength(content) });

let directory: string;
let server: Server;
/** Names of the git host and of another one, on the same port. */
let [host, store] = ['', ''];
/** By path: what is answered. */
let answers: Record<string, { status?: number; headers?: Record<string, string>; body?: unknown }>;
let asked: { request: string; headers: IncomingHttpHeaders; body: unknown }[];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-lfs-'));
  server = createServer(async (request, response) => {
    const body = request.method === 'POST' ? await json(request) : undefined;
    asked.push({ request: `${request.method} http://${request.headers.host}${request.url}`, headers: request.headers, body });
    const { status = 200, headers = {}, body: answer = '' } = answers[request.url ?? ''] ?? { status: 404 };
    response.writeHead(status, headers).end(typeof answer === 'string' ? answer : JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  [host, store] = [`http://git.test:${port}`, `http://store.test:${port}`];
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  expect(await readdir(join(directory, 'spool'))).toEqual([]);
  await rm(directory, { recursive: true });
});
beforeEach(() => {
  [answers, asked] = [{}, []];
});

const batch = '/ada/hello.git/info/lfs/objects/batch';

/** What the batch API answers: an address and headers for each file. */
function offer(...files: readonly { file: LargeFile; href: string; header?: Record<string, string> }[]): void {
  const objects = files.map(({ file, href, header }) => ({
    oid: file.oid,
    size: file.size,
    actions: { download: { href, header } },
  }));
  answers[batch] = { body: { transfer: 'basic', objects } };
}

function fetch(
  files: readonly LargeFile[],
  given: { url?: string; endpoint?: string; token?: SourceToken; allowPrivate?: boolean } = {},
) {
  const hosts = createOutsideSourceHosts({
    allowPrivate: given.allowPrivate ?? true,
    seconds: 20,
    directory: join(directory, 'spool'),
    lookUp: async (name) => {
      if (name === 'git.test' || name === 'store.test') return [{ address: '127.0.0.1', family: 4 }];
      throw new Error(`nobody was to ask for ${name}`);
    },
  });
  const { url = `${host}/ada/hello.git`, endpoint } = given;
  return hosts.fetchLargeFiles({ url, endpoint, files, token: given.token, signal: new AbortController().signal });
}

async function readText(content: AsyncIterable<Uint8Array>): Promise<string> {
  return (await buffer(content)).toString();
}

it('downloads each content once, and reads it as often as asked', async () => {
  const [one, two] = [fileOf('a.bin', 'one'), fileOf('b.bin', 'two '.repeat(100_000))];
  offer({ file: one, href: `${host}/objects/one` }, { file: two, href: `${store}/two?signature=s` });
  answers['/objects/one'] = { body: 'one' };
  answers['/two?signature=s'] = { body: 'two '.repeat(100_000) };
  const files = await fetch([one, two, { ...one, path: 'copy.bin' }]);
  expect(files.bytes).toBe(400_003);
  for (let i = 0; i < 2; i++) {
    expect([files.read(two.oid).size, await readText(files.read(two.oid))]).toEqual([400_000, 'two '.repeat(100_000)]);
    expect(await readText(files.read(one.oid))).toBe('one');
  }
  expect(asked.map(({ request }) => request).sort()).toEqual(
    [`GET ${host}/objects/one`, `GET ${store}/two?signature=s`, `POST ${host}${batch}`].sort(),
  );
  expect(asked[0]?.body).toEqual({
    operation: 'download',
    transfers: ['basic'],
    hash_algo: 'sha256',
    objects: [one, two].map(({ oid, size }) => ({ oid, size })),
  });
  await files.discard();
});

it('asks the server that .lfsconfig names, and beside the repository with and without .git in its address', async () => {
  const file = fileOf('a.bin', 'one');
  const body = { objects: [{ oid: file.oid, actions: { download: { href: `${store}/one` } } }] };
  for (const path of [batch, '/elsewhere/objects/batch']) answers[path] = { body };
  answers['/one'] = { body: 'one' };
  for (const given of [{ url: `${host}/ada/hello` }, { url: `${host}/ada/hello/` }, { endpoint: `${store}/elsewhere/` }])
    await (await fetch([file], given)).discard();
  const batches = asked.flatMap(({ request }) => (request.startsWith('POST') ? request.slice('POST '.length) : []));
  expect(batches).toEqual([host + batch, host + batch, `${store}/elsewhere/objects/batch`]);
  await expect(fetch([file], { endpoint: 'file:///etc' })).rejects.toThrow('lfs.url in .lfsconfig must be an https address');
});

it('sends the token to the origin of the source only, and the headers of a download to the origin of its address only', async () => {
  const [own, other, moved] = ['own', 'other', 'moved'].map((name) => fileOf(`${name}.bin`, name)) as [
    LargeFile,
    LargeFile,
    LargeFile,
  ];
  offer(
    { file: own, href: `${host}/own` },
    { file: other, href: `${store}/other`, header: { 'X-Upload': 'signed', Host: 'inside.test', 'Content-Length': '7' } },
    { file: moved, href: `${host}/moved`, header: { Authorization: 'RemoteAuth one-download' } },
  );
  answers['/own'] = { body: 'own' };
  answers['/other'] = { body: 'other' };
  answers['/moved'] = { status: 302, headers: { location: `${store}/target` } };
  answers['/target'] = { body: 'moved' };
  await (await fetch([own, other, moved], { token })).discard();
  const sent = Object.fromEntries(
    asked.map(({ request, headers }) => [
      request.split(' ')[1]?.replace(/:\d+/, ''),
      [headers.authorization, headers['x-upload']],
    ]),
  );
  expect(sent).toEqual({
    [`http://git.test${batch}`]: [basic, undefined],
    'http://git.test/own': [basic, undefined],
    'http://store.test/other': [undefined, 'signed'],
    'http://git.test/moved': ['RemoteAuth one-download', undefined],
    'http://store.test/target': [undefined, undefined],
  });
  asked = [];
  await expect(fetch([own], { token, endpoint: `${store}/lfs` })).rejects.toThrow('404');
  expect(asked[0]?.headers.authorization).toBeUndefined();
});

it.each([
  ['in a private network', 'http://169.254.169.254/latest'],
  ['without https', 'http://files.example.com/one'],
  ['that is a file', 'file:///etc/passwd'],
])('refuses a download from an address %s', async (_what, href) => {
  answers[batch] = { body: { objects: [{ oid: sha256('one'), actions: { download: { href } } }] } };
  // The server is on loopback, which is allowed for its answer only.
  const lookUp = async () => [{ address: '127.0.0.1', family: 4 as const }];
  const lfs = { endpoint: `${host}/ada/hello.git/info/lfs`, credentials: undefined, hint: '' };
  const { signal } = new AbortController();
  const [download] = await askForDownloads(lfs, [fileOf('a.bin', 'one')], signal, { lookUp, allowPrivate: true });
  const guarded = guardedRequest(
    download?.url ?? new URL(host),
    { method: 'GET', headers: {}, signal },
    { lookUp, allowPrivate: false },
  );
  await expect(guarded).rejects.toMatchObject({ code: 'validation_failed' });
});

it.each([
  ['another content', 'oen', 'sent another content for a.bin than its Git LFS pointer names'],
  ['less', 'on', '2 bytes with SHA-256'],
  ['more', 'one and more', 'sent more than the 3 bytes of a.bin'],
])('refuses %s than the pointer names', async (_what, body, message) => {
  const file = fileOf('a.bin', 'one');
  offer({ file, href: `${host}/one` });
  answers['/one'] = { body };
  await expect(fetch([file])).rejects.toMatchObject({ code: 'validation_failed', message: expect.stringContaining(message) });
});

it('names the file that the server does not have, and what to do', async () => {
  const file = fileOf('assets/a.bin', 'one');
  answers[batch] = { body: { objects: [{ oid: file.oid, error: { code: 404, message: 'Object does\nnot exist' } }] } };
  await expect(fetch([file])).rejects.toThrow(
    /^assets\/a\.bin is stored with Git LFS, and git\.test:\d+ does not have its content \w{12} \(404: Object does not exist\)\. Send it from a clone that has it: git lfs push --all ORIGIN\.$/,
  );
  answers[batch] = { body: { objects: [] } };
  await expect(fetch([file])).rejects.toThrow('does not have its content');
});

it.each([
  ['a page', '<html>'],
  ['another way of transfer', { transfer: 'ssh', objects: [] }],
  [
    'a header that splits the request',
    { objects: [{ oid: sha256('one'), actions: { download: { href: 'http://a.test/', header: { a: 'b\r\nc: d' } } } }] },
  ],
  ['an endless list', { objects: Array.from({ length: 60_000 }, () => ({ oid: 'x'.repeat(80) })) }],
])('refuses %s as an answer of the batch API', async (_what, body) => {
  answers[batch] = { body };
  await expect(fetch([fileOf('a.bin', 'one')])).rejects.toThrow(/has no Git LFS server at|is too long/);
});

it('says which token is missing', async () => {
  answers[batch] = { status: 401 };
  await expect(fetch([fileOf('a.bin', 'one')])).rejects.toThrow('set a token with `paas git:source:set URL --token`');
});
