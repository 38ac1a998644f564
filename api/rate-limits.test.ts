import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, createTestApi, type TestApi, type TestUser, testPassword } from '#test/support/api/test-api.ts';

let test: TestApi;
beforeAll(async () => {
  test = await createTestApi();
});
afterAll(() => test?.close());

const logIn = (address: string): Promise<Answer> =>
  test.ask('POST', '/v1/auth/login', { address, json: { email: `${crypto.randomUUID()}@example.com`, password: testPassword } });
const readUser = (as: TestUser): Promise<Answer> => test.ask('GET', '/v1/user', { as });

async function times(count: number, once: () => Promise<Answer>): Promise<number[]> {
  const statuses: number[] = [];
  for (let call = 0; call < count; call += 1) statuses.push((await once()).status);
  return statuses;
}

describe('the limit of an address', () => {
  it('is exactly 30 in a rolling minute, with a Retry-After that is right to the second', async () => {
    const address = '203.0.113.1';
    expect(new Set(await times(15, () => logIn(address)))).toEqual(new Set([401]));
    test.clock.advance(20 * 1000);
    expect(new Set(await times(15, () => logIn(address)))).toEqual(new Set([401]));
    const refused = await logIn(address);
    expect([refused.status, refused.body.error.code]).toEqual([429, 'rate_limited']);
    const wait = Number(refused.headers.get('retry-after'));
    expect(wait).toBeGreaterThanOrEqual(38);
    expect(wait).toBeLessThanOrEqual(40);
    test.clock.advance((wait - 2) * 1000);
    expect((await logIn(address)).status).toBe(429);
    test.clock.advance(2 * 1000);
    expect((await logIn(address)).status).toBe(401);
  });

  it('counts signup, refresh and logout under both prefixes together', async () => {
    const address = '203.0.113.2';
    const json = { refresh_token: 'unknown' };
    await times(10, () => test.ask('POST', '/v1/auth/refresh', { address, json }));
    await times(10, () => test.ask('POST', '/api/v1/auth/logout', { address, json }));
    await times(9, () => test.ask('POST', '/v1/signup', { address, json: {} }));
    expect((await logIn(address)).status).toBe(401);
    expect((await test.ask('POST', '/v1/signup', { address, json: {} })).status).toBe(429);
  });

  it('is shared by a /64 of IPv6, and separate for the next /64', async () => {
    for (let host = 1; host <= 30; host += 1) await logIn(`2001:db8:77:1::${host}`);
    expect((await logIn('2001:db8:77:1:ffff::1')).status).toBe(429);
    expect((await logIn('2001:db8:77:2::1')).status).toBe(401);
  });

  it('does not apply to users with a token or to health checks', async () => {
    const ada = await test.signUp();
    const address = '203.0.113.3';
    await times(31, () => logIn(address));
    expect((await test.ask('GET', '/v1/auth/ssh-keys', { as: ada, address })).status).toBe(200);
    expect((await test.ask('GET', '/v1/healthz', { address })).status).toBe(200);
  });
});

describe('the limit of a user', () => {
  it('is exactly 600 in a rolling minute over all tokens: a new login does not reset it', async () => {
    const ada = await test.signUp();
    expect(new Set(await times(400, () => readUser(ada)))).toEqual(new Set([200]));
    const { body } = await test.ask('POST', '/v1/auth/login', { json: { email: ada.email, password: testPassword } });
    const again = { ...ada, token: body.data.access_token };
    expect(new Set(await times(200, () => readUser(again)))).toEqual(new Set([200]));
    expect((await readUser(again)).status).toBe(429);
    expect((await readUser(ada)).status).toBe(429);
    expect((await readUser(await test.signUp())).status).toBe(200);
    test.clock.advance(61 * 1000);
    expect((await readUser(ada)).status).toBe(200);
  });

  it('is in the headers of each answer', async () => {
    const ada = await test.signUp();
    const { headers } = await readUser(ada);
    expect(headers.get('ratelimit-policy')).toBe('"authenticated";q=600;w=60');
    expect(headers.get('ratelimit')).toBe('"authenticated";r=599;t=60');
    const refused = await logIn('203.0.113.4');
    expect(refused.headers.get('ratelimit')).toBe('"unauthenticated";r=29;t=60');
  });
});
