import { once } from 'node:events';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApiServer } from '#deploy/parts/api-server.ts';
import { gatewayFiles } from '#gateway/gateway-options.ts';
import { startTestGateway, type TestGateway } from '#gateway/testing/start-test-gateway.ts';
import { listenOnSocket } from '#shared/net/unix-socket.ts';
import { createTestApi, type TestApi } from '#test/support/api/test-api.ts';

let api: TestApi;
let test: TestGateway;
let server: Server;
/** The API, and a stand-in for pushes over HTTP that reads the whole body. */
const serve = async (request: Request): Promise<Response> =>
  request.url.endsWith('.git/git-receive-pack')
    ? new Response(`read ${(await request.arrayBuffer()).byteLength}`)
    : await api.api.fetch(request);

beforeAll(async () => {
  api = await createTestApi();
  test = await startTestGateway();
  server = createApiServer({ fetch: serve, clock: api.clock, log: api.context.log, bodySeconds: 1 });
  await listenOnSocket(server, gatewayFiles(test.dataDir).apiSocket);
});
afterAll(async () => {
  server?.closeAllConnections();
  server?.close();
  await test?.stop();
  await api?.close();
});

/** Sends bytes and reads until the connection closes or the response to them is complete. */
async function send(bytes: string): Promise<{ head: string; body: string }> {
  const received = await test.exchange(bytes);
  const [head = '', body = ''] = received.split(/\r\n\r\n(?=[^H])/);
  return { head, body };
}

const host = 'Host: paas.example.com\r\nConnection: close\r\n';

describe('an error before there is a request', () => {
  it.each([
    ['TRACE', `TRACE /v1/apps HTTP/1.1\r\n${host}\r\n`, 405],
    ['CONNECT', `CONNECT paas.example.com:443 HTTP/1.1\r\n${host}\r\n`, 405],
    ['an unknown method', `FROB /v1/apps HTTP/1.1\r\n${host}\r\n`, 405],
    ['a method that no route has', `PROPFIND /v1/apps HTTP/1.1\r\n${host}\r\n`, 405],
    ['a URL of 40 KB', `GET /${'a'.repeat(40_000)} HTTP/1.1\r\n${host}\r\n`, 431],
    ['headers of 40 KB', `GET /v1/apps HTTP/1.1\r\n${host}X-Big: ${'a'.repeat(40_000)}\r\n\r\n`, 431],
    ['700 headers of 20 KB', `GET /v1/apps HTTP/1.1\r\n${host}${'X-Many: 123456789012345678\r\n'.repeat(700)}\r\n`, 401],
    ['no HTTP', 'hello\r\n\r\n', 400],
    ['HTTP/2 without an upgrade', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
    ['a header without a name', `GET /v1/apps HTTP/1.1\r\n${host}: x\r\n\r\n`, 400],
    ['no Host', 'GET /v1/apps HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    ['two lengths', `POST /v1/signup HTTP/1.1\r\n${host}Content-Length: 1\r\nContent-Length: 2\r\n\r\nx`, 400],
    [
      'a transfer coding that is not supported',
      `POST /v1/signup HTTP/1.1\r\n${host}Transfer-Encoding: gzip, chunked\r\n\r\n`,
      501,
    ],
    ['another expectation', `POST /v1/signup HTTP/1.1\r\n${host}Expect: 200-ok\r\nContent-Length: 1\r\n\r\nx`, 417],
    ['the URL of another host', `GET http://other.example.com/ HTTP/1.1\r\n${host}\r\n`, 400],
    ['* as the URL', `OPTIONS * HTTP/1.1\r\n${host}\r\n`, 400],
    ['a backslash in the URL', `GET /v1\\apps HTTP/1.1\r\n${host}\r\n`, 400],
    ['a URL that is not decodable', `GET /v1/apps/%ff HTTP/1.1\r\n${host}\r\n`, 401],
    ['a Host that is a URL', 'GET /v1/apps HTTP/1.1\r\nHost: http://localhost/\r\nConnection: close\r\n\r\n', 400],
    ['an upgrade', `GET /v1/apps HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`, 401],
  ])('has the envelope: %s', async (_, bytes, status) => {
    const { head, body } = await send(bytes);
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(head).toMatch(/^content-type: application\/json\r?$/im);
    const [, requestId] = /^x-request-id: (req_[0-9a-f]{32})\r?$/im.exec(head) ?? [];
    const { error } = JSON.parse(body.slice(body.indexOf('{'), body.lastIndexOf('}') + 1)) as { error: Record<string, string> };
    expect(error).toEqual({
      code: status === 401 ? 'unauthorized' : 'validation_failed',
      message: expect.stringMatching(/^[A-Z`].*[.]$/),
      request_id: requestId,
      ts: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    if (status === 405) expect(head).toMatch(/^allow: .*GET/im);
  });
});

describe('a body that is refused by its headers', () => {
  it('is answered at once, before a byte of it was sent', async () => {
    const head = `POST /v1/apps HTTP/1.1\r\n${host}Content-Type: application/json\r\nContent-Length: 900000\r\n\r\n`;
    expect((await send(head)).head).toMatch(/^HTTP\/1.1 401 /);
  });

  it('is not asked for when the client waits for 100 Continue', async () => {
    const head = `POST /v1/apps HTTP/1.1\r\n${host}Expect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n`;
    expect((await send(head)).head).toMatch(/^HTTP\/1.1 401 /);
  });
});

describe('Expect: 100-continue', () => {
  it('asks for the body of a request that reads it, and answers when it has come', async () => {
    const body = JSON.stringify({ email: 'a@example.com', password: 'wrong horse' });
    const socket = await test.connect();
    let received = '';
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
    });
    socket.write(
      `POST /v1/auth/login HTTP/1.1\r\n${host}Expect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    await expect.poll(() => received).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    socket.write(body);
    await once(socket, 'close');
    expect(received).toMatch(/\r\n\r\nHTTP\/1.1 401 /);
    expect(received).toContain('"code":"unauthorized"');
  });
});

describe('a body that takes too long', () => {
  const upload = (path: string): string =>
    `POST ${path} HTTP/1.1\r\n${host}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{`;

  it('is answered with 408', async () => {
    const { head, body } = await send(upload('/v1/auth/login'));
    expect(head).toMatch(/^HTTP\/1.1 408 /);
    expect(JSON.parse(body)).toMatchObject({
      error: { code: 'validation_failed', message: 'The request did not arrive within 1 s.' },
    });
  });

  it('is waited for when it is a push', async () => {
    const late = send(upload('/v1/auth/login'));
    const socket = await test.connect();
    let received = '';
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
    });
    socket.write(upload('/app.git/git-receive-pack'));
    await late;
    await send(upload('/v1/auth/login'));
    socket.write(Buffer.alloc(99));
    await once(socket, 'close');
    expect(received).toMatch(/^HTTP\/1.1 200 .*read 100$/s);
  });
});

describe('a request that is answered before its large body has arrived', () => {
  const readHead = async (rest: string): Promise<string> => {
    const socket = connect(gatewayFiles(test.dataDir).apiSocket);
    try {
      socket.write(`POST /v1/apps HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${rest}`);
      const [head] = (await once(socket, 'data')) as [Buffer];
      return head.toString();
    } finally {
      socket.destroy();
    }
  };

  it('says that its connection closes, so that no other request is sent on it', async () => {
    expect(await readHead('Content-Length: 1000000\r\n\r\n{')).toMatch(/^HTTP\/1.1 401 [^]*\r\nconnection: close\r\n/i);
    expect(await readHead('Content-Length: 2\r\n\r\n{}')).toMatch(/^HTTP\/1.1 401 [^]*\r\nconnection: keep-alive\r\n/i);
  });
});
