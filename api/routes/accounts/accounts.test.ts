import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApi } from '#api/create-api.ts';
import type { Api } from '#api/http/api-env.ts';
import { createServices } from '#deploy/control-plane.ts';
import { secondsPerDay, secondsPerHour } from '#shared/durations.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';
import { apiRunsHere } from '#test/support/api/api-runtime.ts';
import {
  type Answer,
  type AnswerBody,
  createTestApi,
  type TestApi,
  type TestUser,
  testPassword,
} from '#test/support/api/test-api.ts';

let test: TestApi;
beforeAll(async () => {
  test = await createTestApi();
});
afterAll(() => test?.close());

const newEmail = (): string => `${crypto.randomUUID()}@example.com`;

describe('signing up', () => {
  it('creates a user, a tenant and a valid token', async () => {
    const email = newEmail();
    const { status, body } = await test.ask('POST', '/v1/signup', {
      json: { email, password: testPassword, tenant_name: 'Analytical Engines' },
    });
    expect(status).toBe(201);
    expect(body.data).toMatchObject({
      user: { email },
      tenant: { name: 'Analytical Engines' },
      token_type: 'Bearer',
      expires_in: 3600,
    });
    const me = await test.ask('GET', '/v1/user', { headers: { authorization: `Bearer ${body.data.access_token}` } });
    expect(me.body.data).toEqual({ id: body.data.user.id, email, role: 'owner', tenant: body.data.tenant });
  });

  it('refuses an email that is taken, regardless of case', async () => {
    const email = newEmail();
    await test.ask('POST', '/v1/signup', { json: { email, password: testPassword } });
    const { status, body } = await test.ask('POST', '/v1/signup', {
      json: { email: email.toUpperCase(), password: testPassword },
    });
    expect([status, body.error.code]).toEqual([409, 'conflict']);
  });

  it.each([
    ['email', { email: 'ada', password: testPassword }],
    ['password', { email: 'ada@example.com', password: 'short' }],
    ['email', { email: 'a\u0000da@example.com', password: testPassword }],
    ['tenant_name', { email: 'ada@example.com', password: testPassword, tenant_name: '' }],
  ])('describes what is wrong with the %s', async (path, json) => {
    const { status, body } = await test.ask('POST', '/v1/signup', { json });
    expect(status).toBe(422);
    expect(body.error.details).toEqual([{ path, message: expect.any(String) }]);
  });

  it.runIf(apiRunsHere)('is limited to 20 accounts a day for each address; what fails is not counted', async () => {
    const address = '203.0.113.120';
    const signUp = async (email = newEmail(), from = address): Promise<Answer> => {
      test.clock.advance(10_000);
      return test.ask('POST', '/v1/signup', { address: from, json: { email, password: testPassword } });
    };
    const email = newEmail();
    expect((await signUp(email)).status).toBe(201);
    for (let account = 1; account < 20; account += 1) {
      expect((await signUp(email)).status).toBe(409);
      expect((await signUp()).status).toBe(201);
    }
    const refused = await signUp();
    expect([refused.status, refused.body.error.code]).toEqual([429, 'rate_limited']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(23 * secondsPerHour);
    expect((await signUp(newEmail(), '203.0.113.121')).status).toBe(201);
    const ada = await test.signUp();
    const invited = newEmail();
    const made = await test.ask('POST', '/v1/tenant/invitations', { as: ada, json: { email: invited, role: 'viewer' } });
    const json = { email: invited, password: testPassword, invitation_token: made.body.data.token };
    expect((await test.ask('POST', '/v1/signup', { address, json })).status).toBe(201);
    test.clock.advance(secondsPerDay * 1000);
    expect((await signUp()).status).toBe(201);
  });

  it('never shows a password', async () => {
    const json = { email: 'ada', password: 'canary-9f31' };
    expect(JSON.stringify((await test.ask('POST', '/v1/signup', { json })).body)).not.toContain('canary-9f31');
    expect(JSON.stringify(test.logged)).not.toContain('canary-9f31');
  });
});

describe('with signup by invitation', () => {
  let closed: Api;
  beforeAll(() => {
    const settings = { ...test.context.settings, signup: 'invitation' as const };
    closed = createApi({ ...test.apiOptions, services: createServices({ ...test.context, settings }) });
  });
  const ask = async (method: string, path: string, json?: unknown, token?: string) => {
    const answer = await closed.request(path, {
      method,
      headers: omitUndefined({
        'content-type': 'application/json',
        authorization: token === undefined ? undefined : `Bearer ${token}`,
      }),
      body: json === undefined ? null : JSON.stringify(json),
    });
    return { status: answer.status, body: (await answer.json()) as AnswerBody };
  };
  const invite = async (owner: TestUser, email: string): Promise<string> =>
    (await test.ask('POST', '/v1/tenant/invitations', { as: owner, json: { email, role: 'developer' } })).body.data.token;
  /** A user of an external issuer, or one who was removed from their last tenant. */
  async function withoutTeam() {
    const email = newEmail();
    const user = await test.identity.createUser(email, testPassword);
    return { email, token: (await test.identity.issueTokens(user)).accessToken };
  }

  it('nobody else can sign up, and a first request creates no tenant', async () => {
    const refused = await ask('POST', '/v1/signup', { email: newEmail(), password: testPassword });
    expect([refused.status, refused.body.error.message]).toEqual([403, expect.stringContaining('by invitation')]);
    const { token } = await withoutTeam();
    for (const path of ['/v1/user', '/v1/apps', '/v1/tenants']) {
      const { status, body } = await ask('GET', path, undefined, token);
      expect([status, body.error.message]).toEqual([403, expect.stringContaining('by invitation')]);
    }
  });

  it('an invited person signs up into that tenant, and creates none', async () => {
    const owner = await test.signUp();
    const email = newEmail();
    const json = { email, password: testPassword, invitation_token: await invite(owner, email) };
    const { status, body } = await ask('POST', '/v1/signup', json);
    expect([status, body.data.tenant.id]).toEqual([201, owner.tenantId]);
    const tenants = await ask('GET', '/v1/tenants', undefined, body.data.access_token);
    expect(tenants.body.data.map(({ id, role }) => [id, role])).toEqual([[owner.tenantId, 'developer']]);
    expect((await ask('POST', '/v1/signup', { ...json, email: newEmail() })).status).toBe(404);
  });

  it('an invitation admits nobody else, and stays valid for its addressee', async () => {
    const owner = await test.signUp();
    const email = newEmail();
    const invitation_token = await invite(owner, email);
    const stolen = await ask('POST', '/v1/signup', { email: newEmail(), password: testPassword, invitation_token });
    expect(stolen.status).toBe(403);
    expect((await ask('POST', '/v1/signup', { email, password: testPassword, invitation_token })).status).toBe(201);
  });

  it('a user without a tenant joins by an invitation', async () => {
    const owner = await test.signUp();
    const { email, token } = await withoutTeam();
    const joined = await ask('POST', '/v1/invitations/accept', { token: await invite(owner, email) }, token);
    expect([joined.status, joined.body.data.id]).toEqual([200, owner.tenantId]);
    expect((await ask('GET', '/v1/user', undefined, token)).body.data.tenant.id).toBe(owner.tenantId);
  });
});

it('with signup closed nobody can sign up, invited or not', async () => {
  const settings = { ...test.context.settings, signup: 'closed' as const };
  const closed = createApi({ ...test.apiOptions, services: createServices({ ...test.context, settings }) });
  const email = newEmail();
  const invited = await test.ask('POST', '/v1/tenant/invitations', { as: await test.signUp(), json: { email, role: 'viewer' } });
  for (const invitation of [{}, { invitation_token: invited.body.data.token }]) {
    const answer = await closed.request('/v1/signup', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email, password: testPassword, ...invitation }),
    });
    expect(answer.status).toBe(403);
    expect(await answer.text()).toContain('Sign-up is closed');
  }
});

describe('a session', () => {
  it('begins with a login, continues by refresh and ends with a logout', async () => {
    const user = await test.signUp();
    const login = await test.ask('POST', '/api/v1/auth/login', { json: { email: user.email, password: testPassword } });
    expect(login.status).toBe(200);
    expect(Object.keys(login.body.data).sort()).toEqual(['access_token', 'expires_in', 'refresh_token', 'token_type']);
    const refreshed = await test.ask('POST', '/v1/auth/refresh', { json: { refresh_token: login.body.data.refresh_token } });
    expect(refreshed.status).toBe(200);
    const json = { refresh_token: refreshed.body.data.refresh_token };
    expect((await test.ask('POST', '/v1/auth/logout', { json })).status).toBe(204);
    expect((await test.ask('POST', '/v1/auth/refresh', { json })).status).toBe(401);
  });

  it('does not begin with a wrong password or an unknown email, and both have the same answer', async () => {
    const user = await test.signUp();
    const [wrong, unknown] = await Promise.all([
      test.ask('POST', '/v1/auth/login', { json: { email: user.email, password: 'wrong horse' } }),
      test.ask('POST', '/v1/auth/login', { json: { email: newEmail(), password: testPassword } }),
    ]);
    expect([wrong.status, unknown.status]).toEqual([401, 401]);
    expect(wrong.body.error.message).toBe(unknown.body.error.message);
  });

  it.each(['known', 'unknown'])('is refused after ten wrong passwords of a %s email, from any addresses', async (which) => {
    const email = which === 'known' ? (await test.signUp()).email : newEmail();
    const logIn = (password: string) => test.ask('POST', '/v1/auth/login', { json: { email, password } });
    const began = performance.now();
    for (let time = 0; time < 10; time += 1) expect((await logIn('wrong horse')).status).toBe(401);
    const { status, headers, body } = await logIn(testPassword);
    expect([status, body.error.code]).toEqual([429, 'rate_limited']);
    expect(body.error.message).toContain('Too many failed logins for this email address.');
    const wait = Number(headers.get('retry-after'));
    expect(wait).toBeGreaterThan(898 - (performance.now() - began) / 1000);
    expect(wait).toBeLessThanOrEqual(900);
  });

  it('can still begin from the address that signed up, while others guess the password', async () => {
    const email = newEmail();
    const address = '203.0.113.88';
    await test.ask('POST', '/v1/signup', { json: { email, password: testPassword }, address });
    const logIn = (json: object, from?: string) => test.ask('POST', '/v1/auth/login', omitUndefined({ json, address: from }));
    for (let time = 0; time < 11; time += 1) await logIn({ email, password: 'wrong horse' });
    expect((await logIn({ email, password: testPassword })).status).toBe(429);
    expect((await logIn({ email, password: testPassword }, address)).status).toBe(200);
  });
});
