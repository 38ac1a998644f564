import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { portOf, startTestGateway, type TestGateway } from './start-test-gateway.ts';

let test: TestGateway;
beforeAll(async () => {
  test = await startTestGateway({ timeouts: { answerMilliseconds: 1000, continueMilliseconds: 100 } });
});
afterAll(() => test?.stop());

const echo = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  const { method, url, headers, rawTrailers } = request;
  response.end(JSON.stringify({ method, url, headers, rawTrailers, bytes, sha256: hash.digest('hex') }));
};

describe('passing on', () => {
  it('brings method, path, headers and body to the app, with the length it was sent with', async () => {
    const app = await test.startApp(echo);
    const answer = await test.fetch(app.host, { method: 'PATCH', path: '/a/../b?c=%20', headers: { 'X-Own': 'kept' }, body: 'hello' });
    expect(JSON.parse(answer.body)).toMatchObject({ method: 'PATCH', url: '/a/../b?c=%20', bytes: 5, headers: { host: app.host, 'x-own': 'kept' } });
  });

  it('streams a chunked upload of 64 MiB and its trailers intact', async () => {
    const app = await test.startApp(echo);
    const block = randomBytes(1024 * 1024);
    const expected = createHash('sha256');
    const outgoing = request({ host: '127.0.0.1', port: test.gateway.httpPort, method: 'POST', agent: false, headers: { host: app.host, 'Transfer-Encoding': 'chunked', Trailer: 'X-Sum' } });
    const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>;
    for (let sent = 0; sent < 64; sent++) {
      expected.update(block);
      if (!outgoing.write(block)) await once(outgoing, 'drain');
    }
    outgoing.addTrailers({ 'X-Sum': 'abc' });
    outgoing.end();
    const [incoming] = await answered;
    let body = '';
    for await (const chunk of incoming.setEncoding('utf8')) body += chunk;
    expect(JSON.parse(body)).toMatchObject({ bytes: 64 * 1024 * 1024, sha256: expected.digest('hex'), rawTrailers: ['X-Sum', 'abc'] });
  });

  it('holds the app back while the client does not read', async () => {
    let written = 0;
    const app = await test.startApp((_, response) => {
      const block = Buffer.alloc(64 * 1024);
      const write = (): void => {
        while (written < 512 * 1024 * 1024) {
          written += block.length;
          if (!response.write(block)) return void response.once('drain', write);
        }
        response.end();
      };
      write();
    });
    const socket = await test.connect();
    socket.pause();
    socket.write(`GET / HTTP/1.1\r\nHost: ${app.host}\r\n\r\n`);
    let before = -1;
    await vi.waitFor(() => {
      const stalled = written > 0 && written === before;
      before = written;
      expect(stalled).toBe(true);
    }, { interval: 200, timeout: 5000 });
    expect(written).toBeLessThan(64 * 1024 * 1024);
    socket.destroy();
  });

  it('answers HEAD with the headers and length of the app and no body', async () => {
    const app = await test.startApp((_, response) => response.setHeader('Content-Length', 1234).end());
    const answer = await test.fetch(app.host, { method: 'HEAD' });
    expect(answer).toMatchObject({ status: 200, body: '', headers: { 'content-length': '1234' } });
  });

  it.each([
    ['of known length', true],
    ['in chunks', false],
  ])('keeps every byte of an answer %s, small or large', async (_, hasLength) => {
    const everyByte = Buffer.from(Array.from({ length: 1024 }, (_byte, index) => index % 256));
    for (const answer of [everyByte, Buffer.concat(new Array(1024).fill(everyByte))]) {
      const app = await test.startApp((_request, response) => response.writeHead(200, hasLength ? { 'Content-Length': answer.length } : {}).end(answer));
      const raw = await test.exchange(`GET / HTTP/1.1\r\nHost: ${app.host}\r\nConnection: close\r\n\r\n`);
      if (hasLength) expect(Buffer.from(raw.slice(raw.indexOf('\r\n\r\n') + 4), 'latin1').equals(answer)).toBe(true);
      expect((await test.fetch(app.host)).body).toBe(answer.toString('utf8'));
    }
  });

  it.each([204, 304])('passes a bodiless %i on and keeps the connection in step', async (status) => {
    const app = await test.startApp((_, response) => response.writeHead(status).end());
    const get = `GET / HTTP/1.1\r\nHost: ${app.host}\r\n`;
    const answer = await test.exchange(`${get}\r\n${get}Connection: close\r\n\r\n`);
    expect(answer.match(new RegExp(`HTTP/1.1 ${status}`, 'g'))).toHaveLength(2);
  });

  it('shows each event of an event stream, and its headers, as soon as the app sends them', async () => {
    let stream: ServerResponse | undefined;
    const app = await test.startApp((_, response) => {
      stream = response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      response.flushHeaders();
    });
    const outgoing = request({ host: '127.0.0.1', port: test.gateway.httpPort, agent: false, headers: { host: app.host } }).end();
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
    for (const event of ['data: 1\n\n', 'data: 2\n\n']) {
      stream?.write(event);
      const [chunk] = (await once(incoming, 'data')) as [Buffer];
      expect(chunk.toString()).toBe(event);
    }
    outgoing.destroy();
  });

  it('passes trailers of the answer on', async () => {
    const app = await test.startApp((_, response) => {
      response.writeHead(200, { Trailer: 'X-Sum' });
      response.write('body');
      response.addTrailers({ 'X-Sum': 'abc' });
      response.end();
    });
    expect(await test.fetch(app.host)).toMatchObject({ body: 'body', trailers: { 'x-sum': 'abc' } });
  });

  it('serves HTTP/1.0 clients, who know no chunks', async () => {
    const app = await test.startApp((_, response) => {
      response.write('one ');
      response.end('two');
    });
    const answer = await test.exchange(`GET / HTTP/1.0\r\nHost: ${app.host}\r\n\r\n`);
    expect(answer.endsWith('\r\n\r\none two')).toBe(true);
  });

  it('asks the app before it lets a client with Expect: 100-continue send its body', async () => {
    const app = createServer();
    const order: string[] = [];
    app.on('checkContinue', (incoming: IncomingMessage, response: ServerResponse) => {
      order.push('asked');
      response.writeContinue();
      void echo(incoming, response);
    });
    await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve));
    const { host, route } = await test.startApp();
    await test.router.applyRoute({ ...route, backends: [{ releaseVersion: 1, weight: 100, instances: [{ key: 'continue', host: '127.0.0.1', port: portOf(app) }] }] });
    const outgoing = request({ host: '127.0.0.1', port: test.gateway.httpPort, method: 'PUT', agent: false, headers: { host, Expect: '100-continue', 'Content-Length': 4 } });
    outgoing.flushHeaders();
    await once(outgoing, 'continue');
    order.push('told');
    outgoing.end('body');
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
    let body = '';
    for await (const chunk of incoming.setEncoding('utf8')) body += chunk;
    expect(order).toEqual(['asked', 'told']);
    expect(JSON.parse(body)).toMatchObject({ bytes: 4 });
    app.close();
  });

  it('lets the app refuse a body before it was sent', async () => {
    const app = createServer();
    app.on('checkContinue', (_, response: ServerResponse) => response.writeHead(413).end('too much'));
    await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve));
    const { host, route } = await test.startApp();
    await test.router.applyRoute({ ...route, backends: [{ releaseVersion: 1, weight: 100, instances: [{ key: 'refuse', host: '127.0.0.1', port: portOf(app) }] }] });
    const answer = await test.exchange(`PUT / HTTP/1.1\r\nHost: ${host}\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 413/);
    expect(answer).not.toContain('100 Continue');
    app.close();
  });
});

describe('breaking off', () => {
  it('ends the app’s work when the client leaves', async () => {
    const left = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const app = await test.startApp((_, response) => {
      response.once('close', () => left.resolve());
      begun.resolve();
    });
    const socket = await test.connect();
    socket.write(`GET / HTTP/1.1\r\nHost: ${app.host}\r\n\r\n`);
    await begun.promise;
    socket.destroy();
    await left.promise;
    await vi.waitFor(async () => expect(await test.router.readTraffic(app.route.appId)).toMatchObject([{ requests: 1, errors: 0 }]));
  });

  it.each([
    ['a chunked answer', {}],
    ['an answer of known length', { 'Content-Length': '100' }],
  ])('never makes %s look whole when the app breaks off', async (_, headers) => {
    const app = await test.startApp((incoming, response) => {
      response.writeHead(200, headers);
      response.write('half', () => incoming.socket.destroy());
    });
    await expect(test.fetch(app.host)).rejects.toThrow();
    expect(await test.router.readTraffic(app.route.appId)).toMatchObject([{ requests: 1, errors: 1 }]);
  });

  it('resets the connection of a client that reads until the end, when the app breaks off', async () => {
    const app = await test.startApp((incoming, response) => {
      response.writeHead(200);
      response.write('half', () => incoming.socket.destroy());
    });
    const socket = await test.connect();
    socket.write(`GET / HTTP/1.0\r\nHost: ${app.host}\r\n\r\n`);
    socket.resume();
    const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException];
    expect(error.code).toBe('ECONNRESET');
  });

  it('gives 504 when the app does not begin to answer in time', async () => {
    const app = await test.startApp(() => undefined);
    const answer = await test.fetch(app.host);
    expect(answer).toMatchObject({ status: 504 });
    expect(answer.body).toContain('did not answer in time');
  });

  it('gives 502 when the app closes the connection without an answer, and does not send a POST again', async () => {
    let seen = 0;
    const app = await test.startApp((incoming) => {
      seen += 1;
      incoming.socket.destroy();
    });
    expect(await test.fetch(app.host, { method: 'POST', body: 'once' })).toMatchObject({ status: 502 });
    expect(seen).toBe(1);
  });
});

describe('choosing an instance', () => {
  it('goes round all instances of a release', async () => {
    const app = await test.startApp(...['a', 'b', 'c'].map((name) => (_: IncomingMessage, response: ServerResponse) => void response.end(name)));
    const answers: string[] = [];
    for (let sent = 0; sent < 6; sent++) answers.push((await test.fetch(app.host)).body);
    expect(answers.join('')).toBe('abcabc');
  });

  it('tries the others when one refuses, with the body of a POST untouched', async () => {
    const app = await test.startApp(echo, echo);
    app.servers[0]?.close();
    for (let sent = 0; sent < 4; sent++) {
      const answer = await test.fetch(app.host, { method: 'POST', body: 'payload' });
      expect(JSON.parse(answer.body)).toMatchObject({ bytes: 7 });
    }
  });

  it('sends a GET again on a fresh connection when the app had closed the kept one', async () => {
    // Answers the first request of a connection, and closes it without a word when a second one arrives.
    const server = createTcpServer((socket: Socket) => {
      let requests = 0;
      socket.on('error', () => undefined);
      socket.on('data', () => {
        requests += 1;
        if (requests === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
        else socket.resetAndDestroy();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { host, route } = await test.startApp();
    const port = (server.address() as { port: number }).port;
    await test.router.applyRoute({ ...route, backends: [{ releaseVersion: 1, weight: 100, instances: [{ key: 'stale', host: '127.0.0.1', port }] }] });
    for (let sent = 0; sent < 5; sent++) expect(await test.fetch(host)).toMatchObject({ status: 200, body: 'ok' });
    for (let sent = 0; sent < 5; sent++) expect(await test.fetch(host, { method: 'POST', body: 'x' })).toMatchObject({ status: 200, body: 'ok' });
    // What the app never saw is neither a request nor an error of it.
    expect(await test.router.readTraffic(route.appId)).toMatchObject([{ requests: 10, errors: 0 }]);
    server.close();
  });

  it('loses no request while instances come and go', async () => {
    const app = await test.startApp(echo);
    const statuses = new Map<number, number>();
    let running = true;
    const load = Promise.all(
      Array.from({ length: 8 }, async () => {
        while (running) {
          const { status } = await test.fetch(app.host, Math.random() < 0.5 ? {} : { method: 'POST', body: 'x' });
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
        }
      }),
    );
    let backends = app.route.backends;
    let old = app.servers[0];
    for (let deploy = 2; deploy < 12; deploy++) {
      const next = await test.startApp(echo);
      const fresh = { releaseVersion: deploy, weight: 10, instances: next.route.backends[0]?.instances ?? [] };
      await test.router.applyRoute({ ...app.route, backends: [...backends.map((backend) => ({ ...backend, weight: 90 })), fresh] });
      const drained = backends[0]?.instances[0]?.key ?? '';
      backends = [{ ...fresh, weight: 100 }];
      await test.router.applyRoute({ ...app.route, backends });
      await vi.waitFor(async () => expect(await test.router.readInFlight(drained)).toBe(0), { interval: 5 });
      old?.close();
      old?.closeAllConnections();
      old = next.servers[0];
    }
    running = false;
    await load;
    expect([...statuses.keys()]).toEqual([200]);
    expect(statuses.get(200)).toBeGreaterThan(50);
  });
});

describe('tunnels', () => {
  it('carries a WebSocket both ways, counts it in flight, and ends it with either side', async () => {
    const app = createServer((_, response) => response.end('plain'));
    let upstream: Socket | undefined;
    app.on('upgrade', (incoming: IncomingMessage, socket: Socket, head: Buffer) => {
      upstream = socket;
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Key: ${incoming.headers['sec-websocket-key']}\r\n\r\n`);
      socket.write(head);
      socket.pipe(socket);
    });
    await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve));
    const { host, route } = await test.startApp();
    await test.router.applyRoute({ ...route, backends: [{ releaseVersion: 1, weight: 100, instances: [{ key: `ws-${host}`, host: '127.0.0.1', port: portOf(app) }] }] });
    const client = await test.connect();
    let received = '';
    client.on('data', (chunk: Buffer) => {
      received += chunk.toString();
    });
    client.write(`GET /ws HTTP/1.1\r\nHost: ${host}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: abc\r\n\r\nearly`);
    await vi.waitFor(() => expect(received).toMatch(/^HTTP\/1.1 101 Switching Protocols\r\n[^]*X-Key: abc[^]*early$/));
    client.write(' later');
    await vi.waitFor(() => expect(received.endsWith('early later')).toBe(true));
    expect(await test.router.readInFlight(`ws-${host}`)).toBe(1);
    upstream?.destroy();
    await once(client, 'close');
    await vi.waitFor(async () => expect(await test.router.readInFlight(`ws-${host}`)).toBe(0));
    expect(await test.router.readTraffic(route.appId)).toMatchObject([{ requests: 1, errors: 0 }]);
    app.close();
  });

  it('passes back the answer of an app that does not upgrade', async () => {
    const app = await test.startApp((_, response) => response.writeHead(426).end('no sockets here'));
    const answer = await test.exchange(`GET / HTTP/1.1\r\nHost: ${app.host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 426/);
    expect(answer).toContain('no sockets here');
    expect(await test.router.readInFlight(app.route.backends[0]?.instances[0]?.key ?? '')).toBe(0);
  });

  it('serves an offer of h2c as the plain request it also is', async () => {
    const app = await test.startApp(echo);
    const answer = await test.fetch(app.host, { headers: { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAMAAABk' } });
    const { headers } = JSON.parse(answer.body);
    expect(answer.status).toBe(200);
    expect(headers).not.toHaveProperty('upgrade');
    expect(headers).not.toHaveProperty('http2-settings');
  });
});

describe('smuggling', () => {
  it.each([
    ['both lengths', 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['two lengths', 'Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello'],
    ['an unknown coding', 'Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n'],
    ['a space before the colon', 'Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n'],
    ['a folded header', 'X-A: b\r\n c: d\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n'],
    ['a bare line feed', 'X-A: b\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['a malformed chunk size', 'Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n'],
  ])('never lets a second request through behind %s', async (_, rest) => {
    const paths: string[] = [];
    const app = await test.startApp((incoming, response) => {
      paths.push(incoming.url ?? '');
      incoming.resume();
      response.end('ok');
    });
    const answer = await test.exchange(`POST /first HTTP/1.1\r\nHost: ${app.host}\r\n${rest}GET /smuggled HTTP/1.1\r\nHost: ${app.host}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 (400|501) /);
    expect(paths).not.toContain('/smuggled');
  });

  it('refuses headers past 32 KiB with 431', async () => {
    const answer = await test.exchange(`GET / HTTP/1.1\r\nHost: paas.example.com\r\nX-Big: ${'a'.repeat(40_000)}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 431 /);
  });
});

describe('where a host leads', () => {
  it('passes the platform’s own hosts to the API, by its socket and with the visitor’s address', async () => {
    await test.startApi((incoming, response) => response.end(`api ${incoming.url} ${incoming.headers['x-forwarded-for']}`));
    for (const host of ['paas.example.com', 'PAAS.example.com.:8080', 'localhost:8080', '127.0.0.1:8080', '[::1]']) {
      expect(await test.fetch(host, { path: '/v1/healthz' })).toMatchObject({ status: 200, body: 'api /v1/healthz 127.0.0.1' });
    }
  });

  it('says in the API’s own envelope when the API is down', async () => {
    const other = await startTestGateway();
    const answer = await other.fetch('localhost', { headers: { Accept: 'text/html' } });
    expect(answer).toMatchObject({ status: 503, headers: { 'content-type': 'application/json', 'retry-after': '2' } });
    expect(JSON.parse(answer.body)).toEqual({
      error: { code: 'internal', message: expect.stringContaining('API is not running'), request_id: answer.headers['x-request-id'], ts: expect.stringMatching(/Z$/) },
    });
    expect(answer.headers['x-request-id']).toMatch(/^req_[0-9a-f]{32}$/);
    await other.stop();
  });

  it('has a page, a text and an envelope for a host without app', async () => {
    const host = 'nobody.apps.localhost';
    const page = await test.fetch(host, { headers: { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } });
    expect(page).toMatchObject({ status: 404, headers: { 'content-type': 'text/html; charset=utf-8' } });
    expect(page.body).toContain('<h1>There is no app here</h1>');
    expect((await test.fetch(host, { headers: { Accept: '*/*' } })).body).toMatch(/^There is no app here\n/);
    expect(JSON.parse((await test.fetch(host, { headers: { Accept: 'application/json' } })).body)).toMatchObject({ error: { code: 'not_found' } });
    expect(await test.fetch('elsewhere.example.org')).toMatchObject({ status: 404 });
  });

  it('tells how to deploy where nothing is deployed, and where to look when nothing runs', async () => {
    const app = await test.startApp();
    await test.router.applyRoute({ ...app.route, backends: [] });
    expect(await test.fetch(app.host)).toMatchObject({ status: 503, body: expect.stringContaining('git push paas main') });
    await test.router.applyRoute(app.route);
    expect(await test.fetch(app.host)).toMatchObject({ status: 503, body: expect.stringContaining(`paas logs -a ${app.route.appName}`) });
    const gone = await test.startApp(echo);
    gone.servers[0]?.close();
    expect(await test.fetch(gone.host)).toMatchObject({ status: 503, body: expect.stringContaining('not running') });
    expect(await test.router.readTraffic(gone.route.appId)).toMatchObject([{ requests: 1, errors: 1 }]);
  });

  it('keeps a connection usable after an answer of its own, and closes it when a body was left unread', async () => {
    const get = 'GET / HTTP/1.1\r\nHost: nobody.apps.localhost\r\n';
    const twice = await test.exchange(`${get}\r\n${get}Connection: close\r\n\r\n`);
    expect(twice.match(/HTTP\/1.1 404/g)).toHaveLength(2);
    const post = await test.exchange('POST / HTTP/1.1\r\nHost: nobody.apps.localhost\r\nContent-Length: 5\r\n\r\nhello');
    expect(post).toMatch(/Connection: close/);
  });
});

describe('stopping and starting again', () => {
  it('frees its ports at once, ends open requests whole, and starts again with all routes', async () => {
    const first = await startTestGateway();
    let open: ServerResponse | undefined;
    const app = await first.startApp((incoming, response) => {
      if (incoming.url === '/slow') open = response;
      else response.end('quick');
    });
    const slow = first.fetch(app.host, { path: '/slow' });
    await vi.waitFor(() => expect(open).toBeDefined());
    await first.gateway.stop(10);
    await expect(first.fetch(app.host)).rejects.toThrow('ECONNREFUSED');
    const second = await startTestGateway({}, first.dataDir);
    expect(await second.fetch(app.host)).toMatchObject({ status: 200, body: 'quick' });
    open?.end('whole');
    expect(await slow).toMatchObject({ status: 200, body: 'whole' });
    await first.gateway.drained;
    await second.stop();
    await first.stop();
  });
});
