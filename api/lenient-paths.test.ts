import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { routedPath } from '#api/http/routed-path.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
beforeAll(async () => {
  test = await createTestApi();
  ada = await test.signUp();
});
afterAll(() => test?.close());

const status = async (path: string, headers: Record<string, string> = { authorization: `Bearer ${ada.token}` }) =>
  (await test.api.request(path, { headers: { 'x-test-address': crypto.randomUUID(), ...headers } })).status;

describe('a path finds its route', () => {
  it.each(['/v1/apps/', '//v1/apps', '/v1//apps', '/api//v1/apps/', '/v1/apps//', '/v1/healthz/', '//v1//healthz'])(
    'as %s',
    async (path) => {
      expect(await status(path)).toBe(200);
    },
  );

  it('with an id in upper case', async () => {
    const app = await test.createApp(ada);
    expect(await status(`/v1/apps/${app.id.toUpperCase()}`)).toBe(200);
    expect(await status(`/v1/apps/${app.id.toUpperCase()}/builds/`)).toBe(200);
    const { body } = await test.ask('POST', '/v1/auth/tokens', { as: ada, json: { name: 'ci', scope: 'read' } });
    const revoked = await test.api.request(`/v1/auth/tokens/${body.data.id.toUpperCase()}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${ada.token}` },
    });
    expect(revoked.status).toBe(204);
  });

  it('of which the access rules are the same: no spelling is a way around the token', async () => {
    for (const path of ['//v1/apps', '/v1/apps/', '/v1//user', '/api/v1/user/', '/v1/healthz/../user'])
      expect([path, await status(path, {})]).toEqual([path, 401]);
  });

  it('but not as a part of another', async () => {
    expect(await status('/v1/')).toBe(404);
    expect(await status('/')).toBe(404);
  });

  it('and names from git keep their case', () => {
    const id = crypto.randomUUID();
    const path = `/v1/apps/${id}/commits/${id.toUpperCase()}`;
    expect(routedPath(new Request(`http://localhost/api${path}`))).toBe(path);
  });
});

describe('a list', () => {
  it.each(['processes', 'domains', 'logs', 'metrics', 'addons', 'builds', 'releases', 'deploys'])(
    'of %s has the envelope of every list',
    async (name) => {
      const app = await test.createApp(ada);
      const { body } = await test.ask('GET', `/v1/apps/${app.id}/${name}`, { as: ada });
      expect(Object.keys(body)).toEqual(['data', 'next_cursor']);
    },
  );

  it('of quotas, too', async () => {
    expect(Object.keys((await test.ask('GET', '/v1/quotas', { as: ada })).body)).toEqual(['data', 'next_cursor']);
  });
});

describe('a stranger', () => {
  it('is told 401 before the size of a body, whether its length is announced or not', async () => {
    const body = 'x'.repeat(30 * 1024 * 1024);
    const announced = await test.api.request('/v1/apps', {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', 'content-length': String(body.length) },
    });
    const hook = await test.api.request('/v1/webhooks/githost', {
      method: 'POST',
      body: new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(1024 * 1024)) }),
      duplex: 'half',
    } as RequestInit);
    expect([announced.status, hook.status]).toEqual([401, 401]);
  });
});
