import { get, type RequestListener } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AppRoute } from '#shared/routing/app-route.ts';
import { startTestGateway, type TestGateway } from '../testing/start-test-gateway.ts';

let test: TestGateway;
beforeAll(async () => {
  test = await startTestGateway();
});
afterAll(() => test?.stop());

/** An app with an old and a new release of one instance each. @param weight of the new one */
async function startRollout(old: RequestListener, fresh: RequestListener, weight: number, change: Partial<AppRoute> = {}) {
  const app = await test.startApp(old, fresh);
  const [one, other] = app.route.backends[0]?.instances ?? [];
  if (one === undefined || other === undefined) throw new Error('two instances');
  const route: AppRoute = {
    ...app.route,
    ...change,
    backends: [
      { releaseVersion: 1, weight: 100 - weight, instances: [one] },
      { releaseVersion: 2, weight, instances: [other] },
    ],
  };
  await test.router.applyRoute(route);
  return { host: app.host, route };
}

const page =
  (word: string, headers: Record<string, string> = {}): RequestListener =>
  (request, response) => {
    if (request.url === '/' || request.url === `/${word}.js`)
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', ...headers }).end(word);
    else response.writeHead(404).end(`not in ${word}`);
  };

describe('a visitor', () => {
  it('without a cookie is known by the address: every request goes to one release', async () => {
    const { host } = await startRollout(page('old'), page('new'), 50);
    const bodies = await Promise.all(Array.from({ length: 20 }, async () => (await test.fetch(host)).body));
    expect(new Set(bodies).size).toBe(1);
  });

  it('gets a cookie with a page during a rollout, once, and stays with it when the address changes', async () => {
    const { host } = await startRollout(page('old'), page('new'), 50);
    const first = await test.fetch(host);
    const [cookie = ''] = first.headers['set-cookie'] ?? [];
    expect(cookie).toMatch(/^paas_visitor=\d{1,4}; Path=\/; HttpOnly; SameSite=Lax$/);
    const headers = { cookie: cookie.split(';')[0] ?? '' };
    // Other loopback addresses have other buckets.
    for (let address = 2; address < 22; address += 1) {
      const again = await test.fetch(host, { headers, localAddress: `127.0.0.${address}` });
      expect(again.body).toBe(first.body);
      expect(again.headers['set-cookie']).toBeUndefined();
    }
  });

  it('gets no cookie from an app with one release and one instance, with an asset, or with what shared caches store', async () => {
    const { host } = await test.startApp(page('only'));
    expect((await test.fetch(host)).headers['set-cookie']).toBeUndefined();
    const json: RequestListener = (_, response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    const shared = page('shared', { 'cache-control': 'public, max-age=60' });
    for (const listener of [json, shared]) {
      const rollout = await startRollout(listener, listener, 50);
      expect((await test.fetch(rollout.host)).headers['set-cookie']).toBeUndefined();
    }
  });

  it("has a cookie that the app does not see, beside the app's own", async () => {
    const tell: RequestListener = (request, response) =>
      response.setHeader('set-cookie', 'own=2').end(JSON.stringify(request.headers.cookie ?? null));
    const { host } = await startRollout(tell, tell, 50);
    const answer = await test.fetch(host, { headers: { cookie: 'a=1; paas_visitor=77; b=paas_visitor=1' } });
    expect(JSON.parse(answer.body)).toBe('a=1; b=paas_visitor=1');
    expect(answer.headers['set-cookie']).toEqual(['own=2']);
    expect((await test.fetch(host, { headers: { cookie: 'paas_visitor=77' } })).body).toBe('null');
  });

  it.each(['', 'x', '10000', '-1', '1e3', '99999999999'])('whose cookie says %j is known by the address', async (value) => {
    const { host } = await startRollout(page('old'), page('new'), 50);
    const known = await test.fetch(host);
    const answer = await test.fetch(host, { headers: { cookie: `paas_visitor=${value}` } });
    expect(answer.body).toBe(known.body);
    expect(answer.headers['set-cookie']).toHaveLength(1);
  });

  it('stays with one instance of several, while others get the other ones', async () => {
    const app = await test.startApp(...['a', 'b', 'c'].map((word) => page(word)));
    const seen = new Set<string>();
    for (let bucket = 0; bucket < 30; bucket += 1) {
      const headers = { cookie: `paas_visitor=${bucket}` };
      const bodies = [await test.fetch(app.host, { headers }), await test.fetch(app.host, { headers })].map(({ body }) => body);
      expect(bodies[0]).toBe(bodies[1]);
      seen.add(bodies[0] ?? '');
    }
    expect([...seen].sort()).toEqual(['a', 'b', 'c']);
  });

  it('need not stay where the app says so: releases and instances take turns', async () => {
    const { host } = await startRollout(page('old'), page('new'), 50, { sessionAffinity: false });
    const answers = [await test.fetch(host), await test.fetch(host)];
    expect(new Set(answers.map(({ body }) => body))).toEqual(new Set(['old', 'new']));
    expect(answers[0]?.headers['set-cookie']).toBeUndefined();
  });
});

describe('what the release of a visitor does not have', () => {
  it.each([0, 50, 100])('is taken from the other one while both are in the route, with the new one at %i%%', async (weight) => {
    const { host } = await startRollout(page('old'), page('new'), weight);
    for (const word of ['old', 'new'])
      expect(await test.fetch(host, { path: `/${word}.js` })).toMatchObject({ status: 200, body: word });
  });

  it('is answered by the release of the visitor when the other one does not have it either, or does not run', async () => {
    const { host, route } = await startRollout(page('old'), page('new'), 100);
    expect(await test.fetch(host, { path: '/none.js' })).toMatchObject({ status: 404, body: 'not in new' });
    const head = await test.fetch(host, { path: '/none.js', method: 'HEAD' });
    expect(head.status).toBe(404);
    const closed = route.backends.map((backend) =>
      backend.releaseVersion === 1 ? { ...backend, instances: [{ key: 'gone', host: '127.0.0.1', port: 1 }] } : backend,
    );
    await test.router.applyRoute({ ...route, backends: closed });
    expect(await test.fetch(host, { path: '/none.js' })).toMatchObject({ status: 404, body: 'not in new' });
  });

  it('is not asked for elsewhere with a POST', async () => {
    const { host } = await startRollout(page('old'), page('new'), 100);
    expect((await test.fetch(host, { path: '/old.js', method: 'POST' })).body).toBe('not in new');
  });

  it('comes whole, also when the other answer is large and was held back', async () => {
    const large = 'x'.repeat(3_000_000);
    const broken: RequestListener = (_, response) => response.writeHead(404).end(large);
    const other: RequestListener = (_, response) => response.writeHead(500).end('failed');
    const { host } = await startRollout(other, broken, 100);
    const answer = await test.fetch(host, { path: '/large' });
    expect(answer.status).toBe(404);
    expect(answer.body.length).toBe(large.length);
  });

  it('leaves nothing in flight when the client goes while the other release is asked', async () => {
    let asked = 0;
    const silent: RequestListener = () => {
      asked += 1;
    };
    const { host, route } = await startRollout(silent, page('new'), 100);
    const outgoing = get({ host: '127.0.0.1', port: test.gateway.httpPort, path: '/old.js', headers: { host }, agent: false });
    outgoing.on('error', () => undefined);
    await expect.poll(() => asked).toBe(1);
    outgoing.destroy();
    const keys = route.backends.flatMap(({ instances }) => instances.map(({ key }) => key));
    await expect.poll(() => Promise.all(keys.map((key) => test.router.readInFlight(key)))).toEqual([0, 0]);
  });
});
