import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApi } from '#api/create-api.ts';
import type { Api } from '#api/http/api-env.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

const ours = 'https://dashboard.example.com';

let test: TestApi;
let open: Api;
let ada: TestUser;
beforeAll(async () => {
  test = await createTestApi();
  open = createApi({ ...test.apiOptions, allowedOrigins: [ours] });
  ada = await test.signUp();
});
afterAll(() => test?.close());

const preflight = (api: Api, origin: string) =>
  api.request('/v1/apps', {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' },
  });
const read = (api: Api, origin: string, token = ada.token, path = '/v1/user') =>
  api.request(path, { headers: { origin, authorization: `Bearer ${token}`, 'x-test-address': '::1' } });
const allowed = (response: Response) => response.headers.get('access-control-allow-origin');

describe('a page of another origin', () => {
  it('may call nothing when the operator has listed no origin', async () => {
    expect(allowed(await preflight(test.api, ours))).toBeNull();
    expect(allowed(await read(test.api, ours))).toBeNull();
  });

  it('may call the API when its origin is listed, without cookies, and reads errors and limits too', async () => {
    const asked = await preflight(open, ours);
    expect([asked.status, allowed(asked)]).toEqual([204, ours]);
    expect(asked.headers.get('access-control-allow-headers')).toContain('authorization');
    expect(asked.headers.get('access-control-allow-credentials')).toBeNull();
    for (const answer of [await read(open, ours), await read(open, ours, 'wrong'), await read(open, ours, ada.token, '/v1/no')]) {
      expect(allowed(answer)).toBe(ours);
      expect(answer.headers.get('access-control-expose-headers')).toContain('x-request-id');
      expect(answer.headers.get('vary')).toContain('Origin');
    }
  });

  it('reads that it was limited', async () => {
    const bob = await test.signUp();
    const answers = await Promise.all(Array.from({ length: 601 }, async () => read(open, ours, bob.token)));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(1);
    expect(refused.map(allowed)).toEqual([ours]);
  });

  it.each(['https://evil.example.com', 'https://dashboard.example.com.evil.test', 'null', 'http://dashboard.example.com'])(
    'that is not listed may not: %s',
    async (origin) => {
      expect(allowed(await preflight(open, origin))).toBeNull();
      expect(allowed(await read(open, origin))).toBeNull();
    },
  );
});
