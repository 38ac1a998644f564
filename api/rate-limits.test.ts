import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apiRunsHere } from '#test/support/api/api-runtime.ts';
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
  it.runIf(apiRunsHere)('is exactly 30 in a rolling minute, with a Retry-After that is right to the second', async () => {
    const address = '203.0.113.1';
    const seconds = (): number => test.clock.now().getTime() / 1000;
    // The clock runs on while requests are answered: the oldest call is counted between these two times.
    const before = seconds();
    expect((await logIn(address)).status).toBe(401);
    const after = seconds();
    expect(new Set(await times(14, () => logIn(address)))).toEqual(new Set([401]));
    test.clock.advance(20 * 1000);
    expect(new Set(await times(15, () => logIn(address)))).toEqual(new Set([401]));
    const asked = seconds();
    const refused = await logIn(address);
    expect([refused.status, refused.body.error.code]).toEqual([429, 'rate_limited']);
    const wait = Number(refused.headers.get('retry-after'));
    expect(wait).toBeGreaterThanOrEqual(before + 60 - seconds());
    expect(wait).toBeLessThanOrEqual(after + 60 - asked + 1);
    test.clock.advance((wait - 10) * 1000);
    expect((await logIn(address)).status).toBe(429);
    test.clock.advance(10 * 1000);
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

describe('the limit of a token', () => {
  const logInAs = async (user: TestUser): Promise<TestUser> => {
    const { body } = await test.ask('POST', '/v1/auth/login', { json: { email: user.email, password: testPassword } });
    return { ...user, token: body.data.access_token };
  };

  it.runIf(apiRunsHere)('is exactly 600 in a rolling minute, for each token', async () => {
    const ada = await test.signUp();
    expect(new Set(await times(400, () => readUser(ada)))).toEqual(new Set([200]));
    test.clock.advance(30 * 1000);
    expect(new Set(await times(200, () => readUser(ada)))).toEqual(new Set([200]));
    expect((await readUser(ada)).status).toBe(429);
    expect((await readUser(await logInAs(ada))).status).toBe(200);
    test.clock.advance(31 * 1000);
    expect(new Set(await times(400, () => readUser(ada)))).toEqual(new Set([200]));
    expect((await readUser(ada)).status).toBe(429);
  });

  it.runIf(apiRunsHere)('gives no more than 1800 to a user, however many tokens they create', async () => {
    const ada = await test.signUp();
    let granted = 0;
    for (let login = 0; login < 10; login += 1) {
      const again = await logInAs(ada);
      granted += (await times(250, () => readUser(again))).filter((status) => status === 200).length;
    }
    expect(granted).toBeGreaterThanOrEqual(1800);
    expect(granted).toBeLessThan(1820);
    expect((await readUser(await test.signUp())).status).toBe(200);
  });

  it.runIf(apiRunsHere)('refuses a read as it refuses a change: the answer has nothing of the resource', async () => {
    const ada = await test.signUp();
    const app = await test.createApp(ada);
    const path = `/v1/apps/${app.id}`;
    await times(599, () => test.ask('GET', path, { as: ada }));
    const read = await test.ask('GET', path, { as: ada });
    const changed = await test.ask('PATCH', `${path}/config`, { as: ada, json: { NAME: 'value' } });
    expect([read.status, changed.status]).toEqual([429, 429]);
    const comparable = ({ headers, body: { error } }: Answer) => [[...headers.keys()], error.code, error.message];
    expect(comparable(read)).toEqual(comparable(changed));
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

describe('failed credentials of an address', () => {
  const wrong: [what: string, fail: (address: string) => Promise<Answer>][] = [
    ['a wrong access token', (address) => test.ask('GET', '/v1/apps', { address, headers: { authorization: 'Bearer a.b.c' } })],
    ['a wrong API token', (address) => test.ask('GET', '/v1/apps', { address, headers: { authorization: 'Bearer paas_wrong' } })],
    ['no token', (address) => test.ask('GET', '/v1/auth/ssh-keys', { address })],
    [
      'another scheme',
      (address) => test.ask('POST', '/v1/apps', { address, headers: { authorization: 'Basic YTpi' }, json: {} }),
    ],
    [
      'a wrong token of a build',
      (address) =>
        test.ask('GET', `/v1/internal/builds/${crypto.randomUUID()}/source`, { address, headers: { authorization: 'Bearer x' } }),
    ],
    ['an unsigned delivery', (address) => test.ask('POST', '/v1/webhooks/githost', { address, json: {} })],
  ];

  it.runIf(apiRunsHere).each(wrong)('are refused after 30 in a minute: %s', async (_what, fail) => {
    const source = nextSource();
    expect(new Set(await times(30, () => fail(source)))).toEqual(new Set([401]));
    const refused = await fail(source);
    expect([refused.status, refused.body.error.code]).toEqual([429, 'rate_limited']);
    expect(refused.headers.get('www-authenticate')).toBeNull();
    const wait = Number(refused.headers.get('retry-after'));
    expect(wait).toBeGreaterThan(55);
    test.clock.advance(wait * 1000);
    expect((await fail(source)).status).toBe(401);
  });

  it('are counted together, whatever they are, by /64 of IPv6', async () => {
    for (let round = 0; round < 5; round += 1) for (const [, fail] of wrong) await fail(`2001:db8:98:1::${round}`);
    for (const [, fail] of wrong) expect((await fail('2001:db8:98:1:9::9')).status).toBe(429);
    expect((await wrong[0]?.[1]('2001:db8:98:2::1'))?.status).toBe(401);
  });

  it('refuse the password of a login too, before it is compared', async () => {
    const ada = await test.signUp();
    const source = nextSource();
    await times(30, () => test.ask('GET', '/v1/apps', { address: source }));
    const json = { email: ada.email, password: testPassword };
    expect((await test.ask('POST', '/v1/auth/login', { address: source, json })).status).toBe(429);
    expect((await test.ask('POST', '/v1/auth/login', { address: nextSource(), json })).status).toBe(200);
  });

  it('do not refuse right tokens from the same address, nor what needs no credentials', async () => {
    const ada = await test.signUp();
    const { body } = await test.ask('POST', '/v1/auth/tokens', { as: ada, json: { name: 'ci', scope: 'read' } });
    const source = nextSource();
    await times(40, () => test.ask('GET', '/v1/apps', { address: source }));
    expect((await test.ask('GET', '/v1/apps', { address: source, as: ada })).status).toBe(200);
    expect((await test.ask('GET', '/v1/apps', { address: source, as: { ...ada, token: body.data.token } })).status).toBe(200);
    expect((await test.ask('GET', '/v1/healthz', { address: source })).status).toBe(200);
    const json = { refresh_token: ada.refreshToken };
    expect((await test.ask('POST', '/v1/auth/refresh', { address: source, json })).status).toBe(200);
  });

  let sources = 0;
  function nextSource(): string {
    sources += 1;
    return `198.51.100.${sources}`;
  }
});
