import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { millisecondsPerDay, millisecondsPerMinute, secondsPerDay } from '#shared/durations.ts';
import { apiRunsHere } from '#test/support/api/api-runtime.ts';
import { joinTenant } from '#test/support/api/seeds.ts';
import { type Answer, createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
beforeAll(async () => {
  test = await createTestApi();
});
afterAll(() => test?.close());
beforeEach(async () => {
  ada = await test.signUp();
});

async function makeToken(user: TestUser, scope: string, more: object = {}): Promise<{ id: string; as: TestUser }> {
  const { status, body } = await test.ask('POST', '/v1/auth/tokens', { as: user, json: { name: 'ci', scope, ...more } });
  expect(status).toBe(201);
  return { id: body.data.id, as: { ...user, token: body.data.token } };
}
const codeOf = ({ status, body }: Answer): string => (status < 400 ? 'ok' : body.error.code);

describe('an API token', () => {
  it('is shown once, begins with paas_, and works like a login', async () => {
    const { as } = await makeToken(ada, 'full');
    expect(as.token).toMatch(/^paas_[A-Za-z0-9_-]{43}$/);
    expect((await test.ask('GET', '/v1/user', { as })).body.data).toMatchObject({ id: ada.id, role: 'owner' });
    const listed = await test.ask('GET', '/v1/auth/tokens', { as: ada });
    expect(listed.body.data).toMatchObject([{ name: 'ci', scope: 'full', expires_at: null }]);
    expect(JSON.stringify(listed.body)).not.toContain(as.token);
  });

  it('is stored as its hash only', async () => {
    const first = await test.ask('POST', '/v1/auth/tokens', { as: ada, json: { name: 'ci', scope: 'read' } });
    const rows = await test.context.db
      .selectFrom('api_tokens')
      .selectAll()
      .where('user_id', '=', ada.id as never)
      .execute();
    expect(JSON.stringify(rows)).not.toContain(first.body.data.token);
    expect(rows.every((row) => /^[0-9a-f]{64}$/.test(row.token_hash))).toBe(true);
    expect(test.logged.join('\n')).not.toContain(first.body.data.token);
  });

  it.each([
    ['read', { look: 'ok', create: 'forbidden', remove: 'forbidden' }],
    ['deploy', { look: 'ok', create: 'ok', remove: 'forbidden' }],
    ['full', { look: 'ok', create: 'ok', remove: 'ok' }],
  ])('with scope %s limits the role of its owner', async (scope, expected) => {
    const app = await test.createApp(ada);
    const { as } = await makeToken(ada, scope);
    expect({
      look: codeOf(await test.ask('GET', `/v1/apps/${app.id}`, { as })),
      create: codeOf(await test.ask('POST', '/v1/apps', { as, json: {} })),
      remove: codeOf(await test.ask('DELETE', `/v1/apps/${app.id}`, { as })),
    }).toEqual(expected);
  });

  it('never has more permissions than its owner, and follows every change of the role', async () => {
    const bob = await joinTenant(test, ada, 'viewer');
    const { as } = await makeToken(bob, 'full');
    expect(codeOf(await test.ask('POST', '/v1/apps', { as, json: {} }))).toBe('forbidden');
    const { body } = await test.ask('GET', '/v1/tenant/members', { as: ada });
    const member = body.data.find((each) => each.user_id === bob.id);
    await test.ask('PATCH', `/v1/tenant/members/${member?.id}`, { as: ada, json: { role: 'developer' } });
    expect(codeOf(await test.ask('POST', '/v1/apps', { as, json: {} }))).toBe('ok');
  });

  it('cannot give access to others with any scope', async () => {
    const { as, id } = await makeToken(ada, 'full');
    const refused = await Promise.all([
      test.ask('POST', '/v1/auth/tokens', { as, json: { name: 'more', scope: 'read' } }),
      test.ask('DELETE', `/v1/auth/tokens/${id}`, { as }),
      test.ask('POST', '/v1/auth/ssh-keys', { as, json: { name: 'x', public_key: 'ssh-ed25519 AAAA' } }),
      test.ask('DELETE', `/v1/auth/ssh-keys/${crypto.randomUUID()}`, { as }),
      test.ask('POST', '/v1/tenant/invitations', { as, json: { email: 'eve@example.com', role: 'owner' } }),
      test.ask('POST', '/v1/invitations/accept', { as, json: { token: 'x' } }),
      test.ask('PATCH', `/v1/tenant/members/${crypto.randomUUID()}`, { as, json: { role: 'owner' } }),
      test.ask('DELETE', `/v1/tenant/members/${crypto.randomUUID()}`, { as }),
      test.ask('DELETE', `/v1/tenant/invitations/${crypto.randomUUID()}`, { as }),
    ]);
    expect(refused.map(codeOf)).toEqual(refused.map(() => 'forbidden'));
  });

  it('stops working at once when it is revoked', async () => {
    const { as, id } = await makeToken(ada, 'read');
    expect((await test.ask('DELETE', `/v1/auth/tokens/${id}`, { as: ada })).status).toBe(204);
    expect((await test.ask('GET', '/v1/user', { as })).status).toBe(401);
    expect((await test.ask('DELETE', `/v1/auth/tokens/${id}`, { as: ada })).status).toBe(404);
  });

  it.runIf(apiRunsHere)('stops working when it expires', async () => {
    const { as } = await makeToken(ada, 'read', { expires_in_days: 2 });
    test.clock.advance((2 * secondsPerDay - 60) * 1000);
    expect((await test.ask('GET', '/v1/user', { as })).status).toBe(200);
    test.clock.advance(millisecondsPerMinute);
    expect((await test.ask('GET', '/v1/user', { as })).status).toBe(401);
    test.clock.advance(-2 * millisecondsPerDay);
  });

  it.runIf(apiRunsHere)('shows when it was last used, to the minute', async () => {
    const { as } = await makeToken(ada, 'read');
    const used = async () => (await test.ask('GET', '/v1/auth/tokens', { as: ada })).body.data[0]?.last_used_at;
    expect(await used()).toBeNull();
    await test.ask('GET', '/v1/user', { as });
    const first = await used();
    expect(first).not.toBeNull();
    await test.ask('GET', '/v1/user', { as });
    expect(await used()).toBe(first);
    test.clock.advance(61 * 1000);
    await test.ask('GET', '/v1/user', { as });
    expect(await used()).not.toBe(first);
    test.clock.advance(-61 * 1000);
  });

  it.each(['paas_', `paas_${'A'.repeat(43)}`, `paas_rt_${'A'.repeat(43)}`, `paas_${'A'.repeat(60_000)}`])(
    'that does not exist is refused: %.12s…',
    async (token) => {
      expect((await test.ask('GET', '/v1/user', { as: { ...ada, token } })).status).toBe(401);
    },
  );

  it('has a rate limit of its own', async () => {
    const [one, other] = [await makeToken(ada, 'read'), await makeToken(ada, 'read')];
    const remaining = async (as: TestUser) => (await test.ask('GET', '/v1/user', { as })).headers.get('ratelimit');
    expect([await remaining(one.as), await remaining(one.as), await remaining(other.as)]).toEqual([
      expect.stringContaining('r=599'),
      expect.stringContaining('r=598'),
      expect.stringContaining('r=599'),
    ]);
  });

  it.each([
    { name: '', scope: 'read' },
    { name: 'ci', scope: 'root' },
    { name: 'ci' },
    { name: 'ci', scope: 'read', expires_in_days: 0 },
    { name: 'ci', scope: 'read', expires_in_days: 1.5 },
    { name: 'ci', scope: 'read', expires_in_days: 1e9 },
  ])('is not created by %j', async (json) => {
    expect((await test.ask('POST', '/v1/auth/tokens', { as: ada, json })).status).toBe(422);
  });
});
