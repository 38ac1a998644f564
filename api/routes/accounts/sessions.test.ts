import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApi } from '#api/create-api.ts';
import { createServices } from '#deploy/control-plane.ts';
import type { Identity } from '#shared/identity/identity.ts';
import { type Answer, createTestApi, type TestApi, type TestUser, testPassword } from '#test/support/api/test-api.ts';

let test: TestApi;
beforeAll(async () => {
  test = await createTestApi();
});
afterAll(() => test?.close());

async function logIn(user: TestUser, password = testPassword): Promise<TestUser> {
  const { body } = await test.ask('POST', '/v1/auth/login', { json: { email: user.email, password } });
  return { ...user, token: body.data.access_token, refreshToken: body.data.refresh_token };
}
const readUser = (as: TestUser): Promise<Answer> => test.ask('GET', '/v1/user', { as });
const refresh = (as: TestUser): Promise<Answer> =>
  test.ask('POST', '/v1/auth/refresh', { json: { refresh_token: as.refreshToken } });
/** The statuses of a request with the access token, and of a refresh. */
const statusesOf = async (as: TestUser): Promise<number[]> => [(await readUser(as)).status, (await refresh(as)).status];
const alive = [200, 200];
const ended = [401, 401];

describe('sessions', () => {
  it('are listed with their address and client, and which of them is used', async () => {
    const ada = await test.signUp();
    await test.ask('POST', '/v1/auth/login', {
      address: '203.0.113.90',
      headers: { 'user-agent': 'curl/8.14' },
      json: { email: ada.email, password: testPassword },
    });
    const { status, body } = await test.ask('GET', '/v1/auth/sessions', { as: ada });
    expect(status).toBe(200);
    expect(body.data.map(({ current, source, client }) => ({ current, source, client }))).toEqual([
      { current: false, source: '203.0.113.90', client: 'curl/8.14' },
      { current: true, source: expect.stringMatching(/::\/64$/) as string, client: '' },
    ]);
  });

  it('are listed page by page', async () => {
    const ada = await test.signUp();
    await logIn(ada);
    await logIn(ada);
    const ids: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const after: string = cursor === '' ? '' : `&cursor=${cursor}`;
      const { body } = await test.ask('GET', `/v1/auth/sessions?limit=1${after}`, { as: ada });
      ids.push(...body.data.map(({ id }) => id));
      cursor = body.next_cursor;
    }
    expect(new Set(ids).size).toBe(3);
  });

  it('are ended one by one: refresh tokens and access tokens are refused at once, on every route', async () => {
    const ada = await test.signUp();
    const app = await test.createApp(ada);
    const other = await logIn(ada);
    const { body } = await test.ask('GET', '/v1/auth/sessions', { as: other });
    const id = body.data.find(({ current }) => current)?.id;
    expect((await test.ask('DELETE', `/v1/auth/sessions/${id}`, { as: ada })).status).toBe(204);
    expect((await test.ask('DELETE', `/v1/auth/sessions/${id}`, { as: ada })).status).toBe(404);
    for (const [method, path] of [
      ['GET', '/v1/apps'],
      ['GET', `/v1/apps/${app.id}`],
      ['GET', `/v1/apps/${app.name}/logs`],
      ['DELETE', `/v1/apps/${app.id}`],
      ['POST', '/v1/invitations/accept'],
      ['GET', '/v1/auth/sessions'],
    ] as const) {
      const json = method === 'POST' ? { token: 'paas_inv_x' } : undefined;
      const answer = await test.ask(method, path, { as: other, ...(json && { json }) });
      expect([path, answer.status, answer.body.error.message]).toEqual([path, 401, 'The session has ended. Log in again.']);
    }
    expect(await statusesOf(other)).toEqual(ended);
    expect(await statusesOf(ada)).toEqual(alive);
  });

  it('end by logging out, with their access tokens', async () => {
    const ada = await test.signUp();
    const other = await logIn(ada);
    await test.ask('POST', '/v1/auth/logout', { json: { refresh_token: other.refreshToken } });
    expect(await statusesOf(other)).toEqual(ended);
    expect(await statusesOf(ada)).toEqual(alive);
  });

  it('end with their access tokens when a refresh token is used twice', async () => {
    const ada = await test.signUp();
    const renewed = (await refresh(ada)).body.data.access_token;
    expect((await refresh(ada)).status).toBe(401);
    expect((await readUser({ ...ada, token: renewed })).status).toBe(401);
  });

  it('of a user end all at once, or all but the one that is used; keys and API tokens stay', async () => {
    const ada = await test.signUp();
    const others = [await logIn(ada), await logIn(ada)];
    const made = await test.ask('POST', '/v1/auth/tokens', { as: ada, json: { name: 'ci', scope: 'full' } });
    const { status, body } = await test.ask('DELETE', '/v1/auth/sessions?which=others', { as: ada });
    expect([status, body.data]).toEqual([200, { sessions: 2, ssh_keys: 0, api_tokens: 0 }]);
    for (const other of others) expect(await statusesOf(other)).toEqual(ended);
    expect((await readUser(ada)).status).toBe(200);
    expect((await test.ask('DELETE', '/v1/auth/sessions?which=all', { as: ada })).body.data.sessions).toBe(1);
    expect(await statusesOf(ada)).toEqual(ended);
    expect((await readUser({ ...ada, token: made.body.data.token })).status).toBe(200);
    expect(await statusesOf(await logIn(ada))).toEqual(alive);
  });

  it('end together with SSH keys and API tokens of all teams, if asked for', async () => {
    const ada = await test.signUp();
    const { data } = (await test.ask('POST', '/v1/auth/tokens', { as: ada, json: { name: 'ci', scope: 'full' } })).body;
    const public_key = `ssh-ed25519 ${keyBlob().toBase64()}`;
    await test.ask('POST', '/v1/auth/ssh-keys', { as: ada, json: { name: 'laptop', public_key } });
    const path = '/v1/auth/sessions?which=all&ssh_keys=true&api_tokens=true';
    expect((await test.ask('DELETE', path, { as: ada })).body.data).toEqual({ sessions: 1, ssh_keys: 1, api_tokens: 1 });
    expect((await readUser({ ...ada, token: data.token })).status).toBe(401);
    const again = await logIn(ada);
    expect((await test.ask('GET', '/v1/auth/ssh-keys', { as: again })).body.data).toEqual([]);
  });

  it('are neither listed nor ended by an API token', async () => {
    const ada = await test.signUp();
    const { data } = (await test.ask('POST', '/v1/auth/tokens', { as: ada, json: { name: 'ci', scope: 'full' } })).body;
    const as = { ...ada, token: data.token };
    for (const [method, path] of [
      ['GET', '/v1/auth/sessions'],
      ['DELETE', '/v1/auth/sessions?which=all'],
      ['DELETE', `/v1/auth/sessions/${crypto.randomUUID()}`],
    ] as const)
      expect((await test.ask(method, path, { as })).status).toBe(403);
  });
});

describe('a change of the user', () => {
  const change = (as: TestUser, json: Record<string, string>) => test.ask('PATCH', '/v1/user', { as, json });

  it('of the password needs the current one, and ends all other sessions', async () => {
    const ada = await test.signUp();
    const other = await logIn(ada);
    const { status, body } = await change(ada, { current_password: testPassword, password: 'a new password' });
    expect([status, body.data.email]).toEqual([200, ada.email]);
    expect(await statusesOf(other)).toEqual(ended);
    expect(await statusesOf(ada)).toEqual(alive);
    expect((await test.ask('POST', '/v1/auth/login', { json: { email: ada.email, password: testPassword } })).status).toBe(401);
    expect(await statusesOf(await logIn(ada, 'a new password'))).toEqual(alive);
  });

  it('of the email shows in their teams, and ends no session', async () => {
    const ada = await test.signUp();
    const other = await logIn(ada);
    const email = `new-${ada.email}`;
    expect((await change(ada, { current_password: testPassword, email })).body.data.email).toBe(email);
    expect((await readUser(ada)).body.data.email).toBe(email);
    expect((await test.ask('GET', '/v1/tenant/members', { as: ada })).body.data.map((member) => member.email)).toEqual([email]);
    expect(await statusesOf(other)).toEqual(alive);
    expect(await statusesOf(await logIn({ ...ada, email }))).toEqual(alive);
  });

  it('is refused with a wrong password, without a change, with a bad value and for a taken email', async () => {
    const ada = await test.signUp();
    const bob = await test.signUp();
    const wrong = await change(ada, { current_password: 'wrong horse', password: 'a new password' });
    expect([wrong.status, wrong.body.error.details]).toEqual([403, [{ path: 'current_password', message: 'is wrong' }]]);
    expect((await change(ada, { current_password: testPassword })).status).toBe(422);
    expect((await change(ada, { current_password: testPassword, password: 'short' })).status).toBe(422);
    expect((await change(ada, { current_password: testPassword, email: bob.email })).status).toBe(409);
    expect(await statusesOf(ada)).toEqual(alive);
  });

  it('is refused after ten wrong passwords in 15 minutes', async () => {
    const ada = await test.signUp();
    const guess = () => change(ada, { current_password: 'wrong horse', password: 'a new password' });
    for (let time = 0; time < 10; time += 1) expect((await guess()).status).toBe(403);
    const refused = await guess();
    expect([refused.status, Number(refused.headers.get('retry-after')) > 800]).toEqual([429, true]);
  });

  it('is refused to an API token', async () => {
    const ada = await test.signUp();
    const { data } = (await test.ask('POST', '/v1/auth/tokens', { as: ada, json: { name: 'ci', scope: 'full' } })).body;
    const answer = await change({ ...ada, token: data.token }, { current_password: testPassword, password: 'a new password' });
    expect(answer.status).toBe(403);
  });
});

it('an external issuer manages users and sessions: the answer says so', async () => {
  const identity: Identity = { ...test.identity, capabilities: { passwords: false } };
  const services = createServices({ ...test.context, identity });
  const api = createApi({ ...test.apiOptions, services, identity });
  const ada = await test.signUp();
  const headers = { authorization: `Bearer ${ada.token}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ current_password: testPassword, password: 'a new password' });
  for (const answer of [
    await api.request('/v1/user', { method: 'PATCH', headers, body }),
    await api.request('/v1/auth/sessions', { headers }),
    await api.request('/v1/auth/sessions?which=all', { method: 'DELETE', headers }),
  ]) {
    expect(answer.status).toBe(403);
    expect(await answer.text()).toContain('An external identity provider manages the users of this platform.');
  }
});

/** An Ed25519 public key in SSH's wire format. */
function keyBlob(): Uint8Array {
  const text = (bytes: Uint8Array): number[] => [0, 0, 0, bytes.length, ...bytes];
  return Uint8Array.from([...text(new TextEncoder().encode('ssh-ed25519')), ...text(crypto.getRandomValues(new Uint8Array(32)))]);
}
