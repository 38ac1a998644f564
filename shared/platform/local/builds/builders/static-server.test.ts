import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createStaticServer } from './static-server.ts';

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
  server = createStaticServer(root);
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
