import { afterAll, beforeAll, expect, it } from 'vitest';
import { createGitOverHttp, type GitOverHttp } from '#api/git/git-over-http.ts';
import { apiRunsHere } from '#test/support/api/api-runtime.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
let git: GitOverHttp;
let app: { name: string };
beforeAll(async () => {
  test = await createTestApi();
  ada = await test.signUp();
  app = await test.createApp(ada);
  git = createGitOverHttp({ ...test.apiOptions, ...test.services, git: test.context.git.server });
});
afterAll(() => test?.close());

async function fetchRefs(address: string, password?: string): Promise<Response> {
  const headers = new Headers({ 'x-test-address': address });
  if (password !== undefined) headers.set('authorization', `Basic ${btoa(`git:${password}`)}`);
  const url = `http://localhost:8080/${app.name}.git/info/refs?service=git-upload-pack`;
  const response = await git(new Request(url, { headers }));
  await response?.body?.cancel();
  return response ?? new Response(null, { status: 404 });
}
async function statusesOf(count: number, fetch: () => Promise<Response>): Promise<Set<number>> {
  const statuses = new Set<number>();
  for (let call = 0; call < count; call += 1) statuses.add((await fetch()).status);
  return statuses;
}

it.runIf(apiRunsHere)(
  'wrong passwords of an address are refused after 30 in a minute, with Retry-After; a right one still works',
  async () => {
    const address = '203.0.113.80';
    expect(await statusesOf(15, () => fetchRefs(address, 'wrong'))).toEqual(new Set([401]));
    expect(await statusesOf(15, () => fetchRefs(address, `paas_${'A'.repeat(43)}`))).toEqual(new Set([401]));
    const refused = await fetchRefs(address, 'wrong');
    expect([refused.status, Number(refused.headers.get('retry-after')) > 50]).toEqual([429, true]);
    expect((await fetchRefs(address, ada.token)).status).toBe(200);
    expect((await test.ask('GET', '/v1/apps', { address })).status).toBe(429);
  },
);

it('a request without a password is always asked for one, because git sends such a request first', async () => {
  const address = '203.0.113.81';
  expect(await statusesOf(40, () => fetchRefs(address))).toEqual(new Set([401]));
  expect(await statusesOf(30, () => fetchRefs(address, 'wrong'))).toEqual(new Set([401]));
  expect(await statusesOf(5, () => fetchRefs(address))).toEqual(new Set([401]));
});
