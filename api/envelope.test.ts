import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { limits } from '#shared/limits.ts';
import { apiRunsHere } from '#test/support/api/api-runtime.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
beforeAll(async () => {
  const broken = () => Promise.reject(new Error('canary-of-the-inside'));
  test = await createTestApi({
    logs: { checkAccess: broken, readLogs: broken, followLogs: broken },
  });
  ada = await test.signUp();
});
afterAll(() => test?.close());

const isoUtc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe('the error envelope', () => {
  it.each([
    ['an unknown route', 'GET', '/v1/nothing', {}, [404, 'not_found']],
    ['no version', 'GET', '/apps', {}, [404, 'not_found']],
    ['the root', 'GET', '/', {}, [404, 'not_found']],
    ['a doubled prefix', 'GET', '/api/api/v1/healthz', {}, [404, 'not_found']],
    ['a doubled slash', 'GET', '//v1/nothing', {}, [404, 'not_found']],
    ['a wrong method', 'PATCH', '/v1/apps', {}, [405, 'validation_failed']],
    ['no token', 'GET', '/v1/apps', {}, [401, 'unauthorized']],
    [
      'malformed JSON',
      'POST',
      '/v1/auth/login',
      { body: '{', headers: { 'content-type': 'application/json' } },
      [400, 'validation_failed'],
    ],
    [
      'an empty body',
      'POST',
      '/v1/auth/login',
      { body: '', headers: { 'content-type': 'application/json' } },
      [400, 'validation_failed'],
    ],
    [
      'a form',
      'POST',
      '/v1/auth/login',
      { body: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
      [415, 'validation_failed'],
    ],
    ['no media type', 'POST', '/v1/auth/login', { body: new Uint8Array([123, 125]) }, [415, 'validation_failed']],
    ['a missing field', 'POST', '/v1/auth/login', { json: {} }, [422, 'validation_failed']],
    ['no object', 'POST', '/v1/auth/login', { json: [] }, [422, 'validation_failed']],
    [
      'a wrong password',
      'POST',
      '/v1/auth/login',
      { json: { email: 'a@example.com', password: 'wrong horse' } },
      [401, 'unauthorized'],
    ],
  ] as const)('answers %s', async (_what, method, path, options, [status, code]) => {
    const answer = await test.ask(method, path, options);
    expect(answer.status).toBe(status);
    expect(answer.headers.get('content-type')).toBe('application/json');
    expect(answer.body.error).toMatchObject({
      code,
      message: expect.stringMatching(/^[A-Z`].*[.]$/),
      ts: expect.stringMatching(isoUtc),
    });
    expect(answer.body.error.request_id).toMatch(/^req_[0-9a-f]{32}$/);
    expect(answer.headers.get('x-request-id')).toBe(answer.body.error.request_id);
    expect(Object.keys(answer.body)).toEqual(['error']);
  });

  it('lists every invalid field', async () => {
    const { status, body } = await test.ask('POST', '/v1/signup', { json: { email: 3, password: true } });
    expect(status).toBe(422);
    expect(body.error.details.map((detail: { path: string }) => detail.path)).toEqual(['email', 'password']);
  });

  it.runIf(apiRunsHere)('answers an internal error with 500, and shows its message to the operator only', async () => {
    const app = await test.createApp(ada);
    const { status, body } = await test.ask('GET', `/v1/apps/${app.name}/logs`, { as: ada });
    expect(status).toBe(500);
    expect(body.error.code).toBe('internal');
    expect(JSON.stringify(body)).not.toContain('canary');
    expect(JSON.stringify(body)).not.toMatch(/at .*\.ts/);
    const line = test.logged.find((each) => each.includes('canary-of-the-inside'));
    expect(line).toContain(body.error.request_id);
    expect(line).not.toContain(ada.token);
  });

  it('uses the request id of the gateway, if it is well-formed', async () => {
    const given = `req_${'0123456789abcdef'.repeat(2)}`;
    const kept = await test.ask('GET', '/v1/healthz', { headers: { 'x-request-id': given } });
    expect(kept.headers.get('x-request-id')).toBe(given);
    const replaced = await test.ask('GET', '/v1/healthz', { headers: { 'x-request-id': 'req_"><script>' } });
    expect(replaced.headers.get('x-request-id')).toMatch(/^req_[0-9a-f]{32}$/);
  });

  it('answers an unsupported method with the supported ones, and OPTIONS too', async () => {
    const wrong = await test.ask('DELETE', '/v1/apps');
    expect(wrong.status).toBe(405);
    expect(wrong.headers.get('allow')).toBe('HEAD, GET, POST, OPTIONS');
    const asked = await test.ask('OPTIONS', '/api/v1/apps/hello/config');
    expect(asked.status).toBe(204);
    expect(asked.headers.get('allow')).toBe('HEAD, GET, PATCH, OPTIONS');
    expect((await test.ask('OPTIONS', '/v1/nothing')).status).toBe(404);
  });

  it('answers HEAD like GET, without the body', async () => {
    const head = await test.ask('HEAD', '/v1/user', { as: ada });
    const get = await test.ask('GET', '/v1/user', { as: ada });
    expect(head.status).toBe(200);
    expect(head.body).toBeUndefined();
    expect(head.headers.get('etag')).toBe(get.headers.get('etag'));
    expect((await test.ask('HEAD', '/v1/user')).status).toBe(401);
  });
});

describe('the size of a body', () => {
  const tooLong = `{"email":"${'x'.repeat(limits.http.bodyBytes)}"}`;
  const headers = { 'content-type': 'application/json' };

  it('is refused when announced too large', async () => {
    const { status, body } = await test.ask('POST', '/v1/auth/login', {
      body: tooLong,
      headers: { ...headers, 'content-length': String(tooLong.length) },
    });
    expect([status, body.error.code]).toEqual([413, 'validation_failed']);
  });

  it.runIf(apiRunsHere)('is refused when it turns out too large in chunks, without reading to the end', async () => {
    let sent = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 65_536;
        controller.enqueue(new Uint8Array(65_536).fill(32));
      },
    });
    const { status, body } = await test.ask('POST', '/v1/auth/login', {
      body: endless,
      headers: { ...headers, 'transfer-encoding': 'chunked' },
    });
    expect([status, body.error.code]).toEqual([413, 'validation_failed']);
    expect(sent).toBeLessThan(limits.http.publicBodyBytes + 4 * 65_536);
  });

  it('may be exactly the limit', async () => {
    const padded = `{"email":"a@example.com","password":"wrong horse"}`.padEnd(limits.http.publicBodyBytes, ' ');
    expect((await test.ask('POST', '/v1/auth/login', { body: padded, headers })).status).toBe(401);
    expect((await test.ask('POST', '/v1/auth/login', { body: `${padded} `, headers })).status).toBe(413);
    const larger = '{"name":"-"}'.padEnd(limits.http.bodyBytes, ' ');
    expect((await test.ask('POST', '/v1/apps', { as: ada, body: larger, headers })).status).toBe(422);
    expect((await test.ask('POST', '/v1/apps', { as: ada, body: `${larger} `, headers })).status).toBe(413);
  });

  it.runIf(apiRunsHere).each([
    ['/v1/apps', 401],
    ['/v1/nothing', 404],
  ])('is not read when a stranger sends it to %s, whether its length is announced or not', async (path, status) => {
    let read = false;
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          read = true;
          controller.enqueue(new Uint8Array(65_536).fill(32));
        },
      },
      { highWaterMark: 0 },
    );
    expect((await test.ask('POST', path, { body, headers: { ...headers, 'transfer-encoding': 'chunked' } })).status).toBe(status);
    const announced = { ...headers, 'content-length': String(limits.http.bodyBytes + 1) };
    expect((await test.ask('POST', path, { body: tooLong, headers: announced })).status).toBe(status);
    expect(read).toBe(false);
  });
});

describe('every answer', () => {
  it.each([
    ['GET', '/v1/healthz'],
    ['GET', '/v1/nothing'],
    ['GET', '/v1/apps'],
    ['POST', '/v1/signup'],
  ])('of %s %s is hardened against browsers and caches', async (method, path) => {
    const { headers } = await test.ask(method, path);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it('with tokens in it is cached by nobody', async () => {
    const { body, headers } = await test.ask('POST', '/v1/auth/refresh', {
      json: { refresh_token: (await test.signUp()).refreshToken },
    });
    expect(body.data.access_token).toBeTruthy();
    expect(headers.get('cache-control')).toBe('no-store');
  });
});

describe('the two prefixes', () => {
  it('give the same answers', async () => {
    const app = await test.createApp(ada);
    for (const path of ['/v1/user', '/v1/apps', `/v1/apps/${app.name}`, `/v1/apps/${app.id}/build_cache`]) {
      const [plain, prefixed] = [await test.ask('GET', path, { as: ada }), await test.ask('GET', `/api${path}`, { as: ada })];
      expect(prefixed.status).toBe(200);
      expect(prefixed.body).toEqual(plain.body);
    }
  });

  it('guard the same', async () => {
    expect((await test.ask('GET', '/api/v1/apps')).status).toBe(401);
    expect((await test.ask('GET', '/api/v1/healthz')).status).toBe(200);
  });
});

describe('a read of something that has not changed', () => {
  it('is answered with 304 without a body when the request names its ETag', async () => {
    const first = await test.ask('GET', '/v1/user', { as: ada });
    const etag = first.headers.get('etag') ?? '';
    expect(etag).toMatch(/^"[\w-]{16}"$/);
    for (const given of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const again = await test.ask('GET', '/v1/user', { as: ada, headers: { 'if-none-match': given } });
      expect([again.status, again.body, again.headers.get('etag')]).toEqual([304, undefined, etag]);
    }
    expect((await test.ask('GET', '/v1/user', { as: ada, headers: { 'if-none-match': '"other"' } })).status).toBe(200);
  });
});
