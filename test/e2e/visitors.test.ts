import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nodeApp } from '#test/support/builds/sample-apps.ts';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser, type User } from '#test/support/platform/user.ts';

/** A page whose script has the release in its name, and sessions in memory, as socket.io's long polling has them. */
function pageApp(word: string): Record<string, string> {
  return {
    ...nodeApp(word),
    'server.js': `const { createServer } = require('node:http');
const sessions = new Set();
createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost');
  if (pathname === '/') return response.setHeader('content-type', 'text/html').end('<script src="/assets/app-${word}.js"></script>');
  if (pathname === '/assets/app-${word}.js') return response.end('${word}');
  if (pathname === '/open') { const sid = String(Math.random()); sessions.add(sid); return response.end(sid); }
  if (pathname === '/poll' && sessions.has(searchParams.get('sid'))) return response.end('ok');
  response.writeHead(pathname === '/poll' ? 400 : 404).end();
}).listen(process.env.PORT);
process.on('SIGTERM', () => process.exit(0));
`,
  };
}

describe('a visitor', () => {
  let platform: RunningPlatform;
  let user: User;
  beforeAll(async () => {
    platform = await startPlatform();
    user = await createUser(platform);
  });
  afterAll(async () => {
    await user.remove();
    await removePlatform(platform);
  });

  function ask(localAddress: string, path: string, options: { method?: string; cookie?: string } = {}) {
    return new Promise<{ status: number; body: string; cookie: string }>((resolve, reject) => {
      const headers = { host: 'paged.apps.localhost', ...(options.cookie === undefined ? {} : { cookie: options.cookie }) };
      const { httpPort: port } = platform;
      const asked = request(
        { host: '127.0.0.1', port, path, localAddress, headers, method: options.method ?? 'GET', agent: false },
        (answer) => {
          let body = '';
          answer.setEncoding('utf8').on('data', (text: string) => {
            body += text;
          });
          answer.on('error', reject).on('end', () => {
            const cookie = answer.headers['set-cookie']?.[0]?.split(';')[0] ?? options.cookie ?? '';
            resolve({ status: answer.statusCode ?? 0, body, cookie });
          });
        },
      );
      asked.on('error', reject).end();
    });
  }

  it('never gets a page without its script, nor goes back to the old release, over rollouts', async () => {
    const app = await user.createApp('paged');
    const copy = await user.createWorkingCopy(app.push_url, pageApp('one'));
    expect((await copy.push()).code).toBe(0);
    let isOver = false;
    const broken: string[] = [];
    const words = new Map<string, string[]>();
    let pages = 0;
    const visitors = Array.from({ length: 12 }, async (_, index) => {
      const address = `127.0.1.${index + 1}`;
      const seen: string[] = [];
      words.set(address, seen);
      let cookie: string | undefined;
      while (!isOver) {
        const page = await ask(address, '/', cookie === undefined ? {} : { cookie });
        // Every second one keeps cookies.
        if (index % 2 === 0 && page.cookie !== '') cookie = page.cookie;
        const [, script = '', word = ''] = /src="(\/assets\/app-(\w+)\.js)"/.exec(page.body) ?? [];
        await new Promise((resolve) => setTimeout(resolve, 20));
        const asset = await ask(address, script, cookie === undefined ? {} : { cookie });
        if (page.status !== 200 || asset.status !== 200 || asset.body !== word)
          broken.push(`${page.status} ${script} ${asset.status}`);
        if (seen.at(-1) !== word) seen.push(word);
        pages += 1;
      }
    });
    for (const word of ['two', 'three']) {
      const before = pages;
      await expect.poll(() => pages, { timeout: 30_000 }).toBeGreaterThan(before + 50);
      await copy.commit(pageApp(word));
      expect((await copy.push()).code).toBe(0);
    }
    const before = pages;
    await expect.poll(() => pages, { timeout: 30_000 }).toBeGreaterThan(before + 50);
    isOver = true;
    await Promise.all(visitors);
    expect(broken).toEqual([]);
    for (const seen of words.values()) expect(seen).toEqual(['one', 'two', 'three']);
  });

  it('reaches one instance of three with every request of a session, without cookies', async () => {
    await user.api('PATCH', '/v1/apps/paged/processes/web', { quantity: 3 });
    const instances = async () => {
      const [web] = await user.api<{ instances: { state: string }[] }[]>('GET', '/v1/apps/paged/processes');
      return web?.instances.filter((instance) => instance.state === 'up').length;
    };
    await expect.poll(instances, { timeout: 60_000 }).toBe(3);
    for (let visitor = 1; visitor <= 10; visitor += 1) {
      const address = `127.0.2.${visitor}`;
      const { body: sid } = await ask(address, '/open');
      for (let poll = 0; poll < 6; poll += 1) {
        const method = poll % 2 === 0 ? 'GET' : 'POST';
        expect((await ask(address, `/poll?sid=${sid}`, { method })).status).toBe(200);
      }
    }
  });
});
