import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { limits } from '#shared/limits.ts';
import type { AppLogEntry } from '#shared/platform/app-logs.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
let server: Server;
let port: number;
let followers = 0;
beforeAll(async () => {
  test = await createTestApi({
    logs: {
      checkAccess: async () => undefined,
      readLogs: async () => [],
      followLogs: async (_principal, _app, _query, signal) => follow(signal),
    },
  });
  ada = await test.signUp();
  server = createServer(getRequestListener(test.api.fetch));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
});
afterAll(async () => {
  server?.closeAllConnections();
  server?.close();
  await test?.close();
});

async function* follow(signal: AbortSignal): AsyncIterable<AppLogEntry> {
  followers += 1;
  try {
    yield { ts: new Date(), process: 'web.1', stream: 'stdout', releaseVersion: 1, message: 'hello', position: '1' };
    if (!signal.aborted) await once(signal, 'abort');
  } finally {
    followers -= 1;
  }
}

/** Sends bytes that no client library would send. Resolves with the whole answer when the server closes the connection. */
async function send(text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(text);
  let answer = '';
  for await (const chunk of socket.setEncoding('utf8')) answer += chunk as string;
  return answer;
}

const get = (path: string, ...headers: string[]): Promise<string> =>
  send([`GET ${path} HTTP/1.1`, 'host: localhost', 'connection: close', ...headers, '', ''].join('\r\n'));
const statusOf = (answer: string): number => Number(answer.split(' ')[1]);

describe('over a real server', () => {
  it('answers both forms of a request target, and routes by the path only', async () => {
    const authorization = `authorization: Bearer ${ada.token}`;
    expect(statusOf(await get('/v1/user', authorization))).toBe(200);
    expect(statusOf(await get('http://localhost/api/v1/user', authorization))).toBe(200);
    for (const path of ['//v1/healthz', '/v1//healthz', '/v1/healthz/'])
      expect([path, statusOf(await get(path))]).toEqual([path, 200]);
    for (const path of ['/v1%2Fhealthz', '/api%2Fv1/healthz', '/V1/healthz', '/v1/healthz%00', '/x/../x'])
      expect([path, statusOf(await get(path))]).toEqual([path, 404]);
  });

  it('refuses every spelling of a guarded path without a token', async () => {
    for (const path of [
      '/v1/apps',
      '/api/v1/apps',
      '/v1/apps?',
      '/v1/./apps',
      '/v1/auth/../apps',
      '/v1/healthz/../apps',
      '/v1/%61pps',
      '/v1/auth/ssh-keys',
      'http://localhost/v1/apps',
    ]) {
      expect([path, [401, 404].includes(statusOf(await get(path)))]).toEqual([path, true]);
    }
  });

  it('refuses two Authorization headers in any order', async () => {
    const good = `authorization: Bearer ${ada.token}`;
    expect(statusOf(await get('/v1/user', good, 'authorization: Bearer x'))).toBe(401);
    expect(statusOf(await get('/v1/user', 'authorization: Bearer x', good))).toBe(401);
    expect(statusOf(await get('/v1/user', good, good))).toBe(401);
  });

  it('refuses a chunked body that exceeds the limit, and continues to serve', async () => {
    const sent = request({ port, method: 'POST', path: '/v1/auth/login', headers: { 'content-type': 'application/json' } });
    sent.on('error', () => undefined);
    const answered = once(sent, 'response') as Promise<[{ statusCode: number; resume(): void }]>;
    const chunk = Buffer.alloc(65_536, 32);
    for (let bytes = 0; bytes <= limits.http.bodyBytes + chunk.length; bytes += chunk.length) sent.write(chunk);
    const [response] = await answered;
    expect(response.statusCode).toBe(413);
    response.resume();
    sent.destroy();
    expect(statusOf(await get('/v1/healthz'))).toBe(200);
  });

  it('stops following a log when the client disconnects', async () => {
    const app = await test.createApp(ada);
    const sent = request({
      port,
      path: `/v1/apps/${app.id}/logs`,
      headers: { authorization: `Bearer ${ada.token}`, accept: 'text/event-stream' },
    });
    sent.on('error', () => undefined);
    sent.end();
    const [response] = (await once(sent, 'response')) as [NodeJS.ReadableStream & { headers: Record<string, string> }];
    expect(response.headers['content-type']).toBe('text/event-stream');
    await once(response, 'data');
    await expect.poll(() => followers).toBe(1);
    response.on('error', () => undefined);
    sent.destroy();
    await expect.poll(() => followers).toBe(0);
  });
});
