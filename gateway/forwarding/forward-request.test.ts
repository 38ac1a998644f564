import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { echo, portOf, startTestGateway, type TestGateway } from '../testing/start-test-gateway.ts';

let test: TestGateway;
beforeAll(async () => {
  test = await startTestGateway({ timeouts: { responseMilliseconds: 1000, continueMilliseconds: 100 } });
});
afterAll(() => test?.stop());

describe('forwarding', () => {
  it('forwards method, path, headers, body and its length to the app', async () => {
    const app = await test.startApp(echo);
    const answer = await test.fetch(app.host, {
      method: 'PATCH',
      path: '/a/../b?c=%20',
      headers: { 'X-Own': 'kept' },
      body: 'hello',
    });
    expect(JSON.parse(answer.body)).toMatchObject({
      method: 'PATCH',
      url: '/a/../b?c=%20',
      bytes: 5,
      headers: { host: app.host, 'x-own': 'kept' },
    });
  });

  it('streams a chunked upload of 64 MiB and its trailers unchanged', async () => {
    const app = await test.startApp(echo);
    const block = randomBytes(1024 * 1024);
    const expected = createHash('sha256');
    const outgoing = request({
      host: '127.0.0.1',
      port: test.gateway.httpPort,
      method: 'POST',
      agent: false,
      headers: { host: app.host, 'Transfer-Encoding': 'chunked', Trailer: 'X-Sum' },
    });
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
    expect(JSON.parse(body)).toMatchObject({
      bytes: 64 * 1024 * 1024,
      sha256: expected.digest('hex'),
      rawTrailers: ['X-Sum', 'abc'],
    });
  });

  it('applies back pressure to the app while the client does not read', async () => {
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
    await vi.waitFor(
      () => {
        const stalled = written > 0 && written === before;
        before = written;
        expect(stalled).toBe(true);
      },
      { interval: 200, timeout: 5000 },
    );
    expect(written).toBeLessThan(64 * 1024 * 1024);
    socket.destroy();
  });

  it("forwards a HEAD response with the app's headers and length and no body", async () => {
    const app = await test.startApp((_, response) => response.setHeader('Content-Length', 1234).end());
    const answer = await test.fetch(app.host, { method: 'HEAD' });
    expect(answer).toMatchObject({ status: 200, body: '', headers: { 'content-length': '1234' } });
  });

  it.each([
    ['of known length', true],
    ['in chunks', false],
  ])('forwards every byte of a response %s, small or large', async (_, hasLength) => {
    const everyByte = Buffer.from(Array.from({ length: 1024 }, (_byte, index) => index % 256));
    for (const answer of [everyByte, Buffer.concat(new Array(1024).fill(everyByte))]) {
      const app = await test.startApp((_request, response) =>
        response.writeHead(200, hasLength ? { 'Content-Length': answer.length } : {}).end(answer),
      );
      const raw = await test.exchange(`GET / HTTP/1.1\r\nHost: ${app.host}\r\nConnection: close\r\n\r\n`);
      if (hasLength) expect(Buffer.from(raw.slice(raw.indexOf('\r\n\r\n') + 4), 'latin1').equals(answer)).toBe(true);
      expect((await test.fetch(app.host)).body).toBe(answer.toString('utf8'));
    }
  });

  it.each([204, 304])('forwards a %i without a body, and the connection can be used again', async (status) => {
    const app = await test.startApp((_, response) => response.writeHead(status).end());
    const get = `GET / HTTP/1.1\r\nHost: ${app.host}\r\n`;
    const answer = await test.exchange(`${get}\r\n${get}Connection: close\r\n\r\n`);
    expect(answer.match(new RegExp(`HTTP/1.1 ${status}`, 'g'))).toHaveLength(2);
  });

  it('forwards the headers and each event of an event stream as soon as the app sends them', async () => {
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

  it('forwards the trailers of a response', async () => {
    const app = await test.startApp((_, response) => {
      response.writeHead(200, { Trailer: 'X-Sum' });
      response.write('body');
      response.addTrailers({ 'X-Sum': 'abc' });
      response.end();
    });
    expect(await test.fetch(app.host)).toMatchObject({ body: 'body', trailers: { 'x-sum': 'abc' } });
  });

  it('serves HTTP/1.0 clients, which do not support chunks', async () => {
    const app = await test.startApp((_, response) => {
      response.write('one ');
      response.end('two');
    });
    const answer = await test.exchange(`GET / HTTP/1.0\r\nHost: ${app.host}\r\n\r\n`);
    expect(answer.endsWith('\r\n\r\none two')).toBe(true);
  });

  it("waits for the app's 100 Continue before a client that expects it sends its body", async () => {
    const app = createServer();
    const order: string[] = [];
    app.on('checkContinue', (incoming: IncomingMessage, response: ServerResponse) => {
      order.push('asked');
      response.writeContinue();
      void echo(incoming, response);
    });
    await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve));
    const { host, route } = await test.startApp();
    await test.router.applyRoute({
      ...route,
      backends: [{ releaseVersion: 1, weight: 100, instances: [{ key: 'continue', host: '127.0.0.1', port: portOf(app) }] }],
    });
    const outgoing = request({
      host: '127.0.0.1',
      port: test.gateway.httpPort,
      method: 'PUT',
      agent: false,
      headers: { host, Expect: '100-continue', 'Content-Length': 4 },
    });
    outgoing.flushHeaders();
    await once(outgoing, 'continue');
    order.push('continued');
    outgoing.end('body');
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
    let body = '';
    for await (const chunk of incoming.setEncoding('utf8')) body += chunk;
    expect(order).toEqual(['asked', 'continued']);
    expect(JSON.parse(body)).toMatchObject({ bytes: 4 });
    app.close();
  });

  it('lets the app refuse a body before it is sent', async () => {
    const app = createServer();
    app.on('checkContinue', (_, response: ServerResponse) => response.writeHead(413).end('too much'));
    await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve));
    const { host, route } = await test.startApp();
    await test.router.applyRoute({
      ...route,
      backends: [{ releaseVersion: 1, weight: 100, instances: [{ key: 'refuse', host: '127.0.0.1', port: portOf(app) }] }],
    });
    const answer = await test.exchange(`PUT / HTTP/1.1\r\nHost: ${host}\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 413/);
    expect(answer).not.toContain('100 Continue');
    app.close();
  });
});

describe('an early response', () => {
  const uploadHead = (host: string, bytes: number): string =>
    `POST /upload HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${bytes}\r\n\r\n`;
  const until = (socket: Socket, text: string): Promise<string> =>
    new Promise((resolve, reject) => {
      let received = '';
      socket.on('data', (chunk: Buffer) => {
        received += chunk.toString('latin1');
        if (received.includes(text)) resolve(received);
      });
      socket.once('close', () => reject(new Error(`closed after ${JSON.stringify(received)}`)));
    });

  it('reaches a client that has sent only the headers of a large body', async () => {
    const app = await test.startApp((_, response) => response.writeHead(401, { 'Content-Length': '2' }).end('no'));
    const socket = await test.connect();
    socket.write(uploadHead(app.host, 20_000_000));
    expect(await until(socket, '\r\n\r\nno')).toMatch(/^HTTP\/1.1 401 /);
    socket.destroy();
  });

  it('reaches a client that reads only after it has sent a body of 20 MB', async () => {
    const app = await test.startApp((_, response) => response.writeHead(401, { 'Content-Length': '2' }).end('no'));
    const socket = await test.connect();
    const body = Buffer.alloc(20_000_000);
    socket.write(uploadHead(app.host, body.length));
    await new Promise((resolve, reject) => socket.once('error', reject).write(body, resolve));
    expect(await until(socket, '\r\n\r\nno')).toMatch(/^HTTP\/1.1 401 /);
    socket.destroy();
  });
});

describe('broken connections', () => {
  it('aborts the request to the app when the client disconnects', async () => {
    const disconnected = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const app = await test.startApp((_, response) => {
      response.once('close', () => disconnected.resolve());
      begun.resolve();
    });
    const socket = await test.connect();
    socket.write(`GET / HTTP/1.1\r\nHost: ${app.host}\r\n\r\n`);
    await begun.promise;
    socket.destroy();
    await disconnected.promise;
    await expect.poll(() => test.router.readTraffic(app.route.appId)).toMatchObject([{ requests: 1, errors: 0 }]);
  });

  it('ends the connection of a client that does not read its response', async () => {
    const impatient = await startTestGateway({ timeouts: { idleMilliseconds: 300 } });
    const closed = Promise.withResolvers<void>();
    const app = await impatient.startApp((_, response) => {
      response.once('close', () => closed.resolve());
      response.end(Buffer.alloc(64 * 1024 * 1024));
    });
    const socket = await impatient.connect();
    socket.pause();
    socket.write(`GET / HTTP/1.1\r\nHost: ${app.host}\r\n\r\n`);
    await expect(closed.promise).resolves.toBeUndefined();
    socket.destroy();
    await impatient.stop();
  });

  it.each([
    ['a chunked response', {}],
    ['a response of known length', { 'Content-Length': '100' }],
  ])('never makes %s look complete when the app breaks off', async (_, headers) => {
    const app = await test.startApp((incoming, response) => {
      response.writeHead(200, headers);
      response.write('half', () => incoming.socket.destroy());
    });
    await expect(test.fetch(app.host)).rejects.toThrow();
    expect(await test.router.readTraffic(app.route.appId)).toMatchObject([{ requests: 1, errors: 1 }]);
  });

  it('resets the connection of a client that reads until close when the app breaks off', async () => {
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

  it('responds with 504 when the app does not begin its response in time', async () => {
    const app = await test.startApp(() => undefined);
    const answer = await test.fetch(app.host);
    expect(answer).toMatchObject({ status: 504 });
    expect(answer.body).toContain('did not respond in time');
  });

  it('responds with 502 when the app closes the connection without a response, and does not send a POST again', async () => {
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
  it('uses all instances of a release in rotation where a visitor need not stay with one', async () => {
    const app = await test.startApp(
      ...['a', 'b', 'c'].map((name) => (_: IncomingMessage, response: ServerResponse) => void response.end(name)),
    );
    await test.router.applyRoute({ ...app.route, sessionAffinity: false });
    const answers: string[] = [];
    for (let sent = 0; sent < 6; sent++) answers.push((await test.fetch(app.host)).body);
    expect(answers.join('')).toBe('abcabc');
  });

  it('tries another instance when one cannot be reached, and sends the whole body of a POST', async () => {
    const app = await test.startApp(echo, echo);
    app.servers[0]?.close();
    for (let sent = 0; sent < 4; sent++) {
      const answer = await test.fetch(app.host, { method: 'POST', body: 'payload' });
      expect(JSON.parse(answer.body)).toMatchObject({ bytes: 7 });
    }
  });

  it('sends a GET again on a new connection when the app has closed the idle one', async () => {
    // Responds to the first request of a connection, and resets the connection at the second one.
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
    await test.router.applyRoute({
      ...route,
      backends: [{ releaseVersion: 1, weight: 100, instances: [{ key: 'stale', host: '127.0.0.1', port }] }],
    });
    for (let sent = 0; sent < 5; sent++) expect(await test.fetch(host)).toMatchObject({ status: 200, body: 'ok' });
    for (let sent = 0; sent < 5; sent++)
      expect(await test.fetch(host, { method: 'POST', body: 'x' })).toMatchObject({ status: 200, body: 'ok' });
    // A request that the app never received is not counted.
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
      await test.router.applyRoute({
        ...app.route,
        backends: [...backends.map((backend) => ({ ...backend, weight: 90 })), fresh],
      });
      const drained = backends[0]?.instances[0]?.key ?? '';
      backends = [{ ...fresh, weight: 100 }];
      await test.router.applyRoute({ ...app.route, backends });
      await expect.poll(() => test.router.readInFlight(drained), { interval: 5 }).toBe(0);
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
