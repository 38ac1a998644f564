import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createStaticServer } from '../static-server/static-server.ts';

let base: string;
let server: Server;
let port: number;
beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'paas-static-'));
  const root = join(base, 'site');
  await mkdir(join(root, 'docs'), { recursive: true });
  await mkdir(join(root, '.git'));
  await mkdir(join(root, '.well-known'));
  await mkdir(join(base, 'site-of-others'));
  await writeFile(join(root, 'index.html'), '<h1>home</h1>');
  await writeFile(join(root, 'about.html'), 'about');
  await writeFile(join(root, 'app.JS'), 'x');
  await writeFile(join(root, 'ünï côde.txt'), 'name');
  await writeFile(join(root, 'empty.txt'), '');
  await writeFile(join(root, '404.html'), 'nothing here');
  await writeFile(join(root, 'docs/index.html'), 'docs');
  await writeFile(join(root, '.git/config'), 'canary');
  await writeFile(join(root, '.env'), 'canary');
  await writeFile(join(root, '.well-known/security.txt'), 'mail me');
  await writeFile(join(base, 'secret.txt'), 'canary');
  await writeFile(join(base, 'site-of-others/secret.txt'), 'canary');
  await symlink('../secret.txt', join(root, 'link.txt'));
  await symlink('../site-of-others', join(root, 'others'));
  server = await createStaticServer(root);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await rm(base, { recursive: true });
});

interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

/** Unlike fetch, sends the path as it is. */
function ask(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path, headers, method }, async (response) => {
      let body = '';
      for await (const chunk of response) body += String(chunk);
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
    })
      .on('error', reject)
      .end();
  });
}

describe('the static server', () => {
  it.each([
    ['/', 200, 'text/html; charset=utf-8', '<h1>home</h1>'],
    ['/?a=b', 200, 'text/html; charset=utf-8', '<h1>home</h1>'],
    ['/about', 200, 'text/html; charset=utf-8', 'about'],
    ['/app.JS', 200, 'text/javascript; charset=utf-8', 'x'],
    ['/empty.txt', 200, 'text/plain; charset=utf-8', ''],
    ['/docs/', 200, 'text/html; charset=utf-8', 'docs'],
    [`/${encodeURIComponent('ünï côde.txt')}`, 200, 'text/plain; charset=utf-8', 'name'],
    ['/.well-known/security.txt', 200, 'text/plain; charset=utf-8', 'mail me'],
    ['/nowhere', 404, 'text/html; charset=utf-8', 'nothing here'],
  ])('answers %s with %i, its type and its content', async (path, status, type, body) => {
    const answer = await ask(path);
    expect(answer).toMatchObject({ status, body });
    expect(answer.headers['content-type']).toBe(type);
  });

  it.each([
    '/../secret.txt',
    '/%2e%2e/secret.txt',
    '/..%2fsecret.txt',
    '/docs/../../secret.txt',
    '/..\\secret.txt',
    '//secret.txt',
    '/link.txt',
    '/others/secret.txt',
    '/../site-of-others/secret.txt',
    '/.git/config',
    '/.env',
    '/docs/../.env',
    '/%00',
    '/%',
    '/.%2e/secret.txt',
  ])('gives away nothing for %s', async (path) => {
    const answer = await ask(path);
    expect([400, 404]).toContain(answer.status);
    expect(answer.body).not.toContain('canary');
  });

  it('leads to a directory by its slash, never to another site', async () => {
    expect((await ask('/docs?x=1')).headers['location']).toBe('/docs/?x=1');
    expect((await ask('//docs')).headers['location']).toBe('/docs/');
  });

  it('answers 304 to who has it already, and the whole to who has something else', async () => {
    const etag = String((await ask('/')).headers['etag']);
    expect(await ask('/', { 'if-none-match': `"other", W/${etag}` })).toMatchObject({ status: 304, body: '' });
    expect((await ask('/', { 'if-none-match': '"other"' })).status).toBe(200);
  });

  it('answers HEAD without a body, and refuses what is neither GET nor HEAD', async () => {
    const head = await ask('/', {}, 'HEAD');
    expect(head).toMatchObject({ status: 200, body: '' });
    expect(head.headers['content-length']).toBe('13');
    expect((await ask('/', {}, 'POST')).status).toBe(405);
  });
});

describe('a static site with rules', () => {
  let site: Server;
  const open = async (files: Record<string, string>, fallback: boolean): Promise<void> => {
    const root = await mkdtemp(join(base, 'rules-'));
    for (const [path, text] of Object.entries(files)) {
      await mkdir(join(root, path, '..'), { recursive: true });
      await writeFile(join(root, path), text);
    }
    site = await createStaticServer(root, { fallback });
    await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
    port = (site.address() as AddressInfo).port;
  };
  afterEach(() => {
    site.closeAllConnections();
    site.close();
  });

  it('answers index.html where a browser may route, and 404 for a missing file', async () => {
    await open({ 'index.html': 'app', 'assets/app-DkE4x9Qz.js': 'x' }, true);
    expect(await ask('/profile/7')).toMatchObject({ status: 200, body: 'app' });
    expect(await ask('/user@example.com', { accept: 'text/html,*/*' })).toMatchObject({ status: 200, body: 'app' });
    expect((await ask('/assets/gone-DkE4x9Qz.js')).status).toBe(404);
  });

  it('answers 404.html rather than index.html', async () => {
    await open({ 'index.html': 'app', '404.html': 'missing' }, true);
    expect(await ask('/profile/7')).toMatchObject({ status: 404, body: 'missing' });
  });

  it('follows _redirects in their order, a file of the site before them', async () => {
    const rules =
      '# moved\n/old/* /new/:splat 302\n/u/:id /user.html?id=:id\n/here /there\n/api/* /api.json 200\n/gone /x 200!\n//evil /x\n';
    await open({ _redirects: rules, 'here.html': 'here', 'api.json': '{}', 'gone.html': 'gone', 'x.html': 'x' }, false);
    expect(await ask('/old/a/b?q=1')).toMatchObject({ status: 302, headers: { location: '/new/a/b?q=1' } });
    expect((await ask('/old//evil.example')).headers['location']).toBe('/new//evil.example');
    expect(await ask('/u/7')).toMatchObject({ status: 301, headers: { location: '/user.html?id=7' } });
    expect(await ask('/here')).toMatchObject({ status: 200, body: 'here' });
    expect(await ask('/api/v1/things')).toMatchObject({ status: 200, body: '{}' });
    expect(await ask('/gone')).toMatchObject({ status: 200, body: 'x' });
    expect((await ask('/_redirects')).status).toBe(404);
  });

  it('never redirects to another site by a path', async () => {
    await open({ _redirects: '/* /:splat 301\n' }, false);
    expect((await ask('//evil.example/')).headers['location']).not.toMatch(/^\/\//);
  });

  it('redirects any path to an address that a header can hold, and nothing of the path leaves its place in it', async () => {
    const rules = '/u/:id /user?id=:id\n/go/* https://example.com/ü/a%20b/:splat\n';
    await open({ _redirects: rules }, false);
    const locationOf = async (path: string) => (await ask(path)).headers['location'];
    expect(await locationOf('/u/7%26admin%3D1%23x')).toBe('/user?id=7%26admin%3D1%23x');
    expect(await locationOf('/u/%E2%82%AC')).toBe('/user?id=%E2%82%AC');
    expect(await locationOf('/go/a/%0D%0ASet-Cookie:%20x%3Dy')).toBe(
      'https://example.com/%C3%BC/a%20b/a/%0D%0ASet-Cookie%3A%20x%3Dy',
    );
  });

  it('leaves out rules that it cannot read, or that would take long to compare', async () => {
    const rules = `/:a/:a /x\n/:splat/* /y\n${'/*a'.repeat(9)} /z\n/*a/*b/c /z\n/old /new\n`;
    await open({ _redirects: rules, _headers: `/:a/:a\n  X-A: 1\n/*\n  X-B: 2\n` }, false);
    expect(await ask('/old')).toMatchObject({ status: 301, headers: { location: '/new', 'x-b': '2' } });
    const begun = performance.now();
    expect((await ask('/a'.repeat(2000))).status).toBe(404);
    expect((await ask('/a'.repeat(5000))).status).toBe(400);
    expect(performance.now() - begun).toBeLessThan(5000);
  });

  it('adds the headers of _headers, but not those that frame the response', async () => {
    const rules =
      '/*\n  X-Frame-Options: DENY\n  Content-Length: 1\n/docs/*\n  Cache-Control: max-age=60\n  X-Frame-Options: SAMEORIGIN\n';
    await open({ _headers: rules, 'index.html': 'home', 'docs/a.html': 'a' }, false);
    expect((await ask('/')).headers).toMatchObject({
      'x-frame-options': 'DENY',
      'content-length': '4',
      'cache-control': 'no-cache',
    });
    expect((await ask('/docs/a')).headers).toMatchObject({ 'x-frame-options': 'SAMEORIGIN', 'cache-control': 'max-age=60' });
  });

  it('lets files with a hash in their names be kept for ever, and no others', async () => {
    const hashed = ['assets/index-DkE4x9Qz.js', 'static/js/main.0a1b2c3d.js', '_astro/page.Dk3_x9Qz.css', 'main-ABCD2345.js'];
    const others = ['index.html', 'assets/logo.png', 'robots.txt', 'main.js'];
    await open(Object.fromEntries([...hashed, ...others].map((path) => [path, 'x'])), false);
    for (const path of hashed)
      expect([path, (await ask(`/${path}`)).headers['cache-control']]).toEqual([path, expect.stringContaining('immutable')]);
    for (const path of others) expect([path, (await ask(`/${path}`)).headers['cache-control']]).toEqual([path, 'no-cache']);
  });

  it('compresses text for who accepts it, under an ETag of its own', async () => {
    const text = 'hello '.repeat(1000);
    await open({ 'page.html': text, 'small.html': 'x', 'photo.png': text }, false);
    const plain = await ask('/page');
    expect(plain).toMatchObject({ body: text, headers: { 'content-length': String(text.length), vary: 'accept-encoding' } });
    for (const [encoding, unpack] of [
      ['br', brotliDecompressSync],
      ['gzip', gunzipSync],
    ] as const) {
      const answer = await fetchRaw('/page', encoding);
      expect(answer.headers['content-encoding']).toBe(encoding);
      expect(unpack(answer.body).toString()).toBe(text);
      expect(answer.headers['etag']).not.toBe(plain.headers['etag']);
      expect((await ask('/page', { 'accept-encoding': encoding, 'if-none-match': String(answer.headers['etag']) })).status).toBe(
        304,
      );
    }
    expect((await ask('/page', { 'accept-encoding': 'br;q=0, identity' })).headers['content-encoding']).toBeUndefined();
    expect((await ask('/small', { 'accept-encoding': 'br' })).headers['content-encoding']).toBeUndefined();
    expect((await ask('/photo.png', { 'accept-encoding': 'br' })).headers['content-encoding']).toBeUndefined();
  });
});

function fetchRaw(path: string, encoding: string): Promise<{ headers: Answer['headers']; body: Buffer }> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path, headers: { 'accept-encoding': encoding } }, async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk as Buffer);
      resolve({ headers: response.headers, body: Buffer.concat(chunks) });
    })
      .on('error', reject)
      .end();
  });
}
