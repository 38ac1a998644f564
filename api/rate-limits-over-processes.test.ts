import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApi } from '#api/create-api.ts';
import type { Api } from '#api/http/api-env.ts';
import { createPostgresEventLimits } from '#shared/rate-limits/postgres-event-limits.ts';
import { createPostgresRateLimits } from '#shared/rate-limits/postgres-rate-limits.ts';
import { createTestApi, type TestApi, type TestUser, testPassword } from '#test/support/api/test-api.ts';

let test: TestApi;
let processes: Api[];
/** The moment of all calls: a machine that needs more than a minute for 3000 of them would grant more in the next minute. */
const moment = Date.now();
/** Another process of the API. It shares nothing with the others but the database. */
const startProcess = (): Api =>
  createApi({
    ...test.apiOptions,
    rateLimits: createPostgresRateLimits(test.context.db, () => moment),
    eventLimits: createPostgresEventLimits(test.context.db),
  });
beforeAll(async () => {
  test = await createTestApi();
  processes = [1, 2, 3, 4].map(startProcess);
});
afterAll(() => test?.close());

/** Distributes requests over the processes in rotation. */
const at = (index: number): Api => processes[index % processes.length] ?? startProcess();

const readUser = (api: Api, as: TestUser) =>
  api.request('/v1/user', { headers: { authorization: `Bearer ${as.token}`, 'x-test-address': '::' } });
const logIn = (api: Api, address: string, email = `${crypto.randomUUID()}@example.com`) =>
  api.request('/v1/auth/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-test-address': address },
    body: JSON.stringify({ email, password: testPassword }),
  });
function spread<Result>(count: number, call: (api: Api) => Result): Promise<Awaited<Result>[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => call(at(index))));
}
function tally(answers: readonly Response[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const answer of answers) counts[answer.status] = (counts[answer.status] ?? 0) + 1;
  return counts;
}

describe('over four processes that share a database', () => {
  it('a token has exactly 600 requests per minute, also when they all arrive at once', async () => {
    const ada = await test.signUp();
    expect(tally(await spread(590, (api) => readUser(api, ada)))).toEqual({ 200: 590 });
    expect(tally(await spread(40, (api) => readUser(api, ada)))).toEqual({ 200: 10, 429: 30 });
    const refused = await readUser(startProcess(), ada);
    const wait = Number(refused.headers.get('retry-after'));
    expect([refused.status, wait >= 1 && wait <= 60]).toEqual([429, true]);
    expect((await readUser(at(0), await test.signUp())).status).toBe(200);
  });

  it('more tokens give a user at most 1800 requests per minute, with 19 more for each process', async () => {
    const ada = await test.signUp();
    const { body } = await test.ask('POST', '/v1/auth/tokens', { as: ada, json: { name: 'ci', scope: 'read' } });
    const tokens = [ada.token, body.data.token];
    for (let login = 0; login < 4; login += 1) {
      const answer = await logIn(at(login), '203.0.113.9', ada.email);
      tokens.push(((await answer.json()) as { data: { access_token: string } }).data.access_token);
    }
    let granted = 0;
    for (const token of tokens) granted += tally(await spread(500, (api) => readUser(api, { ...ada, token })))[200] ?? 0;
    expect(granted).toBeGreaterThanOrEqual(1800);
    expect(granted).toBeLessThan(1800 + 4 * 20);
    expect((await readUser(at(2), ada)).headers.get('ratelimit-policy')).toBe('"user";q=1800;w=60');
    expect((await readUser(at(0), await test.signUp())).status).toBe(200);
  });

  it('an address has exactly 30 failed credentials per minute, and right tokens still work from it', async () => {
    const ada = await test.signUp();
    const refused = (api: Api) =>
      api.request('/v1/user', { headers: { authorization: 'Bearer wrong', 'x-test-address': '203.0.113.70' } });
    expect(tally(await spread(80, refused))).toEqual({ 401: 30, 429: 50 });
    expect((await refused(startProcess())).status).toBe(429);
    const right = { authorization: `Bearer ${ada.token}`, 'x-test-address': '203.0.113.70' };
    expect((await at(1).request('/v1/user', { headers: right })).status).toBe(200);
  });

  it('an address has exactly 30 login attempts per minute', async () => {
    expect(tally(await spread(80, (api) => logIn(api, '203.0.113.1')))).toEqual({ 401: 30, 429: 50 });
    expect((await logIn(startProcess(), '203.0.113.1')).status).toBe(429);
    expect((await logIn(at(0), '203.0.113.2')).status).toBe(401);
  });
});
