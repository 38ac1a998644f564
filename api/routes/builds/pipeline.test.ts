import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createBuildAddress } from '#shared/core/builds/build-tokens.ts';
import type { BuildRow } from '#shared/core/builds/builds-store.ts';
import { seedBuild } from '#test/support/api/seeds.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
let build: BuildRow;
beforeAll(async () => {
  test = await createTestApi();
  ada = await test.signUp();
});
afterAll(() => test?.close());
beforeEach(async () => {
  const app = await test.createApp(ada);
  build = await seedBuild(test, ada, app.id);
});

const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });
const callback = async () => (await createBuildAddress(test.context, build.id, 'callback')).token;
const complete = (token: string, json: unknown = { status: 'succeeded', image_url: 'a', digest: 'b' }) =>
  test.ask('POST', `/v1/internal/builds/${build.id}/complete`, { headers: bearer(token), json });

describe('POST /v1/internal/builds/:bid/complete', () => {
  it('accepts the report of the build that has the token, again too', async () => {
    const token = await callback();
    for (let count = 0; count < 2; count += 1) {
      const { status, body } = await complete(token);
      expect([status, body]).toEqual([202, { data: { build_id: build.id } }]);
    }
  });

  it('refuses every other token with 401, a user’s too', async () => {
    const source = await createBuildAddress(test.context, build.id, 'source');
    for (const token of ['wrong', source.token, ada.token]) {
      const { status, body } = await complete(token);
      expect([status, body.error.code]).toEqual([401, 'unauthorized']);
    }
    const { status } = await test.ask('POST', `/v1/internal/builds/${build.id}/complete`, { json: { status: 'failed' } });
    expect(status).toBe(401);
  });

  it('refuses a report that says nothing', async () => {
    expect((await complete(await callback(), { status: 'maybe' })).status).toBe(422);
  });
});

describe('GET /v1/internal/builds/:bid/source', () => {
  it('refuses a token that is not for it, and that of a build that does not run', async () => {
    const { token } = await createBuildAddress(test.context, build.id, 'source');
    for (const each of [await callback(), token, ada.token]) {
      const { status } = await test.ask('GET', `/v1/internal/builds/${build.id}/source`, { headers: bearer(each) });
      expect(status).toBe(401);
    }
  });
});
