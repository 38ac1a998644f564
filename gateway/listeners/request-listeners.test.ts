import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { echo, startTestGateway, type TestGateway } from '../testing/start-test-gateway.ts';

let test: TestGateway;
beforeAll(async () => {
  test = await startTestGateway({ timeouts: { responseMilliseconds: 1000, continueMilliseconds: 100 } });
});
afterAll(() => test?.stop());

describe('request smuggling', () => {
  it.each([
    ['both lengths', 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['two lengths', 'Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello'],
    ['an unknown coding', 'Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n'],
    ['a space before the colon', 'Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n'],
    ['a folded header', 'X-A: b\r\n c: d\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n'],
    ['a bare line feed', 'X-A: b\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['a malformed chunk size', 'Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n'],
  ])('never forwards a second request hidden behind %s', async (_, rest) => {
    const paths: string[] = [];
    const app = await test.startApp((incoming, response) => {
      paths.push(incoming.url ?? '');
      incoming.resume();
      response.end('ok');
    });
    const answer = await test.exchange(
      `POST /first HTTP/1.1\r\nHost: ${app.host}\r\n${rest}GET /smuggled HTTP/1.1\r\nHost: ${app.host}\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 (400|501) /);
    expect(paths).not.toContain('/smuggled');
  });

  it('refuses headers past 32 KiB with 431', async () => {
    const answer = await test.exchange(`GET / HTTP/1.1\r\nHost: paas.example.com\r\nX-Big: ${'a'.repeat(40_000)}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 431 /);
  });
});

describe('destinations of hosts', () => {
  it("forwards requests for the platform's own hosts to the API, with the client's address", async () => {
    await test.startApi((incoming, response) =>
      response.end(['api', incoming.url, incoming.headers['x-forwarded-for']].join(' ')),
    );
    for (const host of ['paas.example.com', 'PAAS.example.com.:8080', 'localhost:8080', '127.0.0.1:8080', '[::1]']) {
      expect(await test.fetch(host, { path: '/v1/healthz' })).toMatchObject({ status: 200, body: 'api /v1/healthz 127.0.0.1' });
    }
  });

  it("responds with the API's error envelope when the API is not running", async () => {
    const other = await startTestGateway();
    const answer = await other.fetch('localhost', { headers: { Accept: 'text/html' } });
    expect(answer).toMatchObject({ status: 503, headers: { 'content-type': 'application/json', 'retry-after': '2' } });
    expect(JSON.parse(answer.body)).toEqual({
      error: {
        code: 'internal',
        message: expect.stringContaining('The API of the platform is not running'),
        request_id: answer.headers['x-request-id'],
        ts: expect.stringMatching(/Z$/),
      },
    });
    expect(answer.headers['x-request-id']).toMatch(/^req_[0-9a-f]{32}$/);
    await other.stop();
  });

  it('responds with a page, a text or an envelope for a host without an app', async () => {
    const host = 'nobody.apps.localhost';
    const page = await test.fetch(host, { headers: { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } });
    expect(page).toMatchObject({ status: 404, headers: { 'content-type': 'text/html; charset=utf-8' } });
    expect(page.body).toContain('<h1>There is no app at this address</h1>');
    expect((await test.fetch(host, { headers: { Accept: '*/*' } })).body).toMatch(/^There is no app at this address\n/);
    expect(JSON.parse((await test.fetch(host, { headers: { Accept: 'application/json' } })).body)).toMatchObject({
      error: { code: 'not_found' },
    });
    expect(await test.fetch('elsewhere.example.org')).toMatchObject({ status: 404 });
  });

  it('explains how to deploy when nothing is deployed, and how to find the cause when nothing runs', async () => {
    const app = await test.startApp();
    await test.router.applyRoute({ ...app.route, backends: [] });
    expect(await test.fetch(app.host)).toMatchObject({ status: 503, body: expect.stringContaining('git push paas main') });
    await test.router.applyRoute(app.route);
    expect(await test.fetch(app.host)).toMatchObject({
      status: 503,
      body: expect.stringContaining(`paas logs -a ${app.route.appName}`),
    });
    const gone = await test.startApp(echo);
    gone.servers[0]?.close();
    expect(await test.fetch(gone.host)).toMatchObject({ status: 503, body: expect.stringContaining('not running') });
    expect(await test.router.readTraffic(gone.route.appId)).toMatchObject([{ requests: 1, errors: 1 }]);
  });

  it('keeps the connection open after an error response, and closes it when a body was not read', async () => {
    const get = 'GET / HTTP/1.1\r\nHost: nobody.apps.localhost\r\n';
    const twice = await test.exchange(`${get}\r\n${get}Connection: close\r\n\r\n`);
    expect(twice.match(/HTTP\/1.1 404/g)).toHaveLength(2);
    const post = await test.exchange('POST / HTTP/1.1\r\nHost: nobody.apps.localhost\r\nContent-Length: 5\r\n\r\nhello');
    expect(post).toMatch(/Connection: close/);
  });
});

describe('a connection that the client does not close', () => {
  const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
  it.each([
    ['invalid HTTP', 'GET / HTTP/1.1\r\n: x\r\n\r\n'],
    ['CONNECT', 'CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['an upgrade for a host without an app', `GET / HTTP/1.1\r\nHost: nobody.apps.localhost\r\n${upgrade}`],
  ])('is closed after the response to %s', async (_, bytes) => {
    const socket = connect({ port: test.gateway.httpPort, host: '127.0.0.1', allowHalfOpen: true }).resume();
    socket.write(bytes);
    await once(socket, 'end');
    // Writing fails only when the gateway has closed the connection for good, and not just its half of it.
    const writing = setInterval(() => socket.write('x'), 50);
    const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException];
    clearInterval(writing);
    expect(['EPIPE', 'ECONNRESET']).toContain(error.code);
  });
});

describe('proxies in front of the gateway', () => {
  const forged = { 'X-Forwarded-For': '198.51.100.1, 203.0.113.7', 'X-Forwarded-Proto': 'https' };
  const asSeen = async (from: TestGateway): Promise<unknown> => {
    const app = await from.startApp(echo);
    const { headers } = JSON.parse((await from.fetch(app.host, { headers: forged })).body) as { headers: Record<string, string> };
    return [headers['x-forwarded-for'], headers['x-forwarded-proto'], headers['x-forwarded-port']];
  };

  it('are believed about their clients, if they are trusted', async () => {
    const behind = await startTestGateway({}, undefined, { trustedProxies: ['127.0.0.0/8'] });
    expect(await asSeen(behind)).toEqual(['203.0.113.7', 'https', '443']);
    await behind.stop();
  });

  it('are clients like others, if they are not', async () => {
    expect(await asSeen(test)).toEqual(['127.0.0.1', 'http', String(test.gateway.httpPort)]);
  });
});
