/** The limits of SPEC.md §8 without moving a clock: so they are tested in every runtime (npm run test:runtimes). */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
beforeAll(async () => {
  test = await createTestApi();
  ada = await test.signUp();
});
afterAll(() => test?.close());

/** The statuses of so many calls at the same time, with how often each came. */
async function countStatuses(calls: number, path: string, init: RequestInit, address: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (let left = calls; left > 0; left -= 25) {
    const headers = { ...init.headers, 'x-test-address': address };
    const batch = Array.from({ length: Math.min(left, 25) }, () => test.request(path, { ...init, headers }));
    for (const response of await Promise.all(batch)) {
      const body = await response.text();
      const key =
        response.status === 429 ? `429 ${(JSON.parse(body) as { error: { code: string } }).error.code}` : response.status;
      counts[key] = (counts[key] ?? 0) + 1;
      if (response.status === 429) expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
    }
  }
  return counts;
}

it('are exactly 600 requests a minute for a token, from all addresses together', async () => {
  const init = { headers: { authorization: `Bearer ${ada.token}` } };
  const [one, other] = [
    await countStatuses(300, '/v1/user', init, '203.0.113.10'),
    await countStatuses(320, '/v1/user', init, '203.0.113.11'),
  ];
  expect(one).toEqual({ 200: 300 });
  expect(other).toEqual({ 200: 300, '429 rate_limited': 20 });
});

it('are exactly 30 requests a minute for an address that is not logged in', async () => {
  const body = JSON.stringify({ refresh_token: 'unknown' });
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
  const address = '203.0.113.12';
  expect(await countStatuses(40, '/v1/auth/logout', init, address)).toMatchObject({ '429 rate_limited': 10 });
  expect(await countStatuses(1, '/v1/auth/logout', init, '203.0.113.13')).not.toHaveProperty('429 rate_limited');
});
