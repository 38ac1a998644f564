import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { millisecondsPerDay } from '#shared/durations.ts';
import { apiRunsHere } from '#test/support/api/api-runtime.ts';
import { joinTenant } from '#test/support/api/seeds.ts';
import { type Answer, createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
let bob: TestUser;
beforeAll(async () => {
  test = await createTestApi();
});
afterAll(() => test?.close());
beforeEach(async () => {
  ada = await test.signUp();
  bob = await test.signUp();
});

const codeOf = ({ status, body }: Answer): string => (status < 400 ? 'ok' : body.error.code);
const inTenantOf = (owner: TestUser) => ({ 'x-paas-tenant': owner.tenantId });
const invite = (as: TestUser, email: string, role = 'developer') =>
  test.ask('POST', '/v1/tenant/invitations', { as, json: { email, role } });
const accept = (as: TestUser, token: string) => test.ask('POST', '/v1/invitations/accept', { as, json: { token } });

async function membershipOf(user: TestUser, as: TestUser): Promise<string> {
  const { body } = await test.ask('GET', '/v1/tenant/members', { as });
  return body.data.find((member) => member.user_id === user.id)?.id ?? crypto.randomUUID();
}

describe('an invitation', () => {
  it('adds its addressee to the tenant with its role', async () => {
    const { body } = await invite(ada, bob.email.toUpperCase());
    expect((await accept(bob, body.data.token)).body.data).toMatchObject({ id: ada.tenantId, role: 'developer' });
    const { body: members } = await test.ask('GET', '/v1/tenant/members', { as: ada });
    expect(members.data.map(({ email, role }) => [email, role])).toEqual([
      [bob.email, 'developer'],
      [ada.email, 'owner'],
    ]);
  });

  it('works once', async () => {
    const { body } = await invite(ada, bob.email);
    expect(codeOf(await accept(bob, body.data.token))).toBe('ok');
    expect(codeOf(await accept(bob, body.data.token))).toBe('not_found');
  });

  it('works once, also when it is used many times at once', async () => {
    const { body } = await invite(ada, bob.email);
    const answers = await Promise.all([1, 2, 3, 4].map(() => accept(bob, body.data.token)));
    expect(answers.map(codeOf).sort()).toEqual(['not_found', 'not_found', 'not_found', 'ok']);
  });

  it('does not work for anybody else, and stays open for its addressee', async () => {
    const { body } = await invite(ada, bob.email);
    expect(codeOf(await accept(await test.signUp(), body.data.token))).toBe('forbidden');
    expect(codeOf(await accept(bob, body.data.token))).toBe('ok');
  });

  it.runIf(apiRunsHere)('ends after 7 days, when it is withdrawn, and when the address gets another', async () => {
    const late = (await invite(ada, bob.email)).body.data;
    test.clock.advance(7 * millisecondsPerDay);
    const dave = { ...bob, token: (await test.identity.issueTokens({ id: bob.id as never, email: bob.email })).accessToken };
    expect(codeOf(await accept(dave, late.token))).toBe('not_found');
    test.clock.advance(-7 * millisecondsPerDay);

    const withdrawn = (await invite(ada, bob.email)).body.data;
    expect(codeOf(await accept(bob, late.token))).toBe('not_found');
    expect((await test.ask('DELETE', `/v1/tenant/invitations/${withdrawn.id}`, { as: ada })).status).toBe(204);
    expect(codeOf(await accept(bob, withdrawn.token))).toBe('not_found');
  });

  it('is listed for admins while it is open, without its token', async () => {
    const { body } = await invite(ada, bob.email);
    const listed = await test.ask('GET', '/v1/tenant/invitations', { as: ada });
    expect(listed.body.data).toMatchObject([{ id: body.data.id, email: bob.email }]);
    expect(JSON.stringify(listed.body)).not.toContain(body.data.token);
    const viewer = await joinTenant(test, ada, 'viewer');
    expect(codeOf(await test.ask('GET', '/v1/tenant/invitations', { as: viewer }))).toBe('forbidden');
  });

  it('changes nothing for a member of the tenant', async () => {
    const member = await joinTenant(test, ada, 'viewer');
    const { body } = await invite(ada, member.email, 'owner');
    expect(codeOf(await accept(member, body.data.token))).toBe('conflict');
    expect((await test.ask('GET', '/v1/user', { as: member })).body.data.role).toBe('viewer');
  });

  it.each([
    ['viewer', 'viewer'],
    ['developer', 'viewer'],
    ['admin', 'owner'],
  ] as const)('cannot be created by %s for the role %s', async (role, wanted) => {
    const member = await joinTenant(test, ada, role);
    expect(codeOf(await invite(member, bob.email, wanted))).toBe('forbidden');
  });

  it('for an owner cannot be replaced by an admin', async () => {
    const admin = await joinTenant(test, ada, 'admin');
    const { body } = await invite(ada, bob.email, 'owner');
    expect(codeOf(await invite(admin, bob.email, 'viewer'))).toBe('forbidden');
    expect((await accept(bob, body.data.token)).body.data.role).toBe('owner');
  });

  it('ends when its creator leaves the tenant', async () => {
    const admin = await joinTenant(test, ada, 'admin');
    const open = (await invite(admin, bob.email)).body.data;
    await test.ask('DELETE', `/v1/tenant/members/${await membershipOf(admin, ada)}`, { as: ada });
    expect(codeOf(await accept(bob, open.token))).toBe('not_found');
  });
});

describe('a member of several tenants', () => {
  it('acts in their own unless the header names another, and sees each tenant only from within', async () => {
    const { body } = await invite(ada, bob.email);
    await accept(bob, body.data.token);
    const app = await test.createApp(ada);
    expect(codeOf(await test.ask('GET', `/v1/apps/${app.id}`, { as: bob }))).toBe('not_found');
    expect(codeOf(await test.ask('GET', `/v1/apps/${app.id}`, { as: bob, headers: inTenantOf(ada) }))).toBe('ok');
    const { body: tenants } = await test.ask('GET', '/v1/tenants', { as: bob });
    expect(tenants.data.map(({ id, role }) => [id, role])).toEqual([
      [ada.tenantId, 'developer'],
      [bob.tenantId, 'owner'],
    ]);
  });

  it('gets the same answer for a tenant that is not theirs and one that does not exist', async () => {
    for (const id of [ada.tenantId, 'zzzzzzzz', '', "' or 1=1 --", 'x'.repeat(5000)]) {
      const { status, body } = await test.ask('GET', '/v1/apps', { as: bob, headers: { 'x-paas-tenant': id } });
      expect([status, body.error.message]).toEqual([403, 'You are not a member of this team. GET /v1/tenants lists yours.']);
    }
  });

  it('has API tokens that belong to one tenant each', async () => {
    const { body } = await invite(ada, bob.email);
    await accept(bob, body.data.token);
    const made = await test.ask('POST', '/v1/auth/tokens', {
      as: bob,
      headers: inTenantOf(ada),
      json: { name: 'ci', scope: 'full' },
    });
    const as = { ...bob, token: made.body.data.token };
    expect((await test.ask('GET', '/v1/user', { as })).body.data).toMatchObject({
      role: 'developer',
      tenant: { id: ada.tenantId },
    });
    expect(codeOf(await test.ask('GET', '/v1/user', { as, headers: inTenantOf(bob) }))).toBe('forbidden');
  });

  it('can use one Idempotency-Key once in each tenant', async () => {
    const { body } = await invite(ada, bob.email);
    await accept(bob, body.data.token);
    const headers = { 'idempotency-key': crypto.randomUUID() };
    const [here, there] = [
      await test.ask('POST', '/v1/apps', { as: bob, json: {}, headers }),
      await test.ask('POST', '/v1/apps', { as: bob, json: {}, headers: { ...headers, ...inTenantOf(ada) } }),
    ];
    expect([here.body.data.tenant_id, there.body.data.tenant_id]).toEqual([bob.tenantId, ada.tenantId]);
  });
});

describe('a removed member', () => {
  it('loses access at once: login, API tokens and SSH keys', async () => {
    const { body } = await invite(ada, bob.email);
    await accept(bob, body.data.token);
    const app = await test.createApp(ada);
    const headers = inTenantOf(ada);
    const made = await test.ask('POST', '/v1/auth/tokens', { as: bob, headers, json: { name: 'ci', scope: 'full' } });
    const ci = { ...bob, token: made.body.data.token };
    const principal = await test.services.accounts.resolvePrincipal({ userId: bob.id as never, email: bob.email });
    const open = () => test.services.pushes.openRepository(principal, app.name, 'write');
    expect(codeOf(await test.ask('GET', `/v1/apps/${app.id}`, { as: ci }))).toBe('ok');
    await expect(open()).resolves.toMatchObject({ appId: app.id });

    const id = await membershipOf(bob, ada);
    expect((await test.ask('DELETE', `/v1/tenant/members/${id}`, { as: ada })).status).toBe(204);
    expect(codeOf(await test.ask('GET', `/v1/apps/${app.id}`, { as: bob, headers }))).toBe('forbidden');
    expect(codeOf(await test.ask('GET', `/v1/apps/${app.id}`, { as: ci }))).toBe('unauthorized');
    await expect(open()).rejects.toMatchObject({ code: 'not_found' });
    expect(codeOf(await test.ask('GET', '/v1/apps', { as: bob }))).toBe('ok');
  });

  it('may be the caller, unless the tenant would have no owner', async () => {
    const viewer = await joinTenant(test, ada, 'viewer');
    expect((await test.ask('DELETE', `/v1/tenant/members/${await membershipOf(viewer, ada)}`, { as: viewer })).status).toBe(204);
    const own = `/v1/tenant/members/${await membershipOf(ada, ada)}`;
    expect(codeOf(await test.ask('DELETE', own, { as: ada }))).toBe('conflict');
    expect(codeOf(await test.ask('PATCH', own, { as: ada, json: { role: 'admin' } }))).toBe('conflict');
    await joinTenant(test, ada, 'owner');
    expect((await test.ask('DELETE', own, { as: ada })).status).toBe(204);
  });

  it('leaves the tenant with an owner, also when the last two leave at once', async () => {
    const other = await joinTenant(test, ada, 'owner');
    const path = `/v1/tenant/members/${await membershipOf(ada, ada)}`;
    const { db } = test.context;
    // The other member's removal, stopped just before its commit.
    const leaving = await db.transaction().execute(async (trx) => {
      await trx
        .selectFrom('tenants')
        .select('id')
        .where('id', '=', ada.tenantId as never)
        .forNoKeyUpdate()
        .execute();
      await trx
        .deleteFrom('memberships')
        .where('user_id', '=', other.id as never)
        .execute();
      const mine = test.ask('DELETE', path, { as: ada });
      await expect.poll(() => waitingForLock(db)).toBe(true);
      return { mine };
    });
    expect(codeOf(await leaving.mine)).toBe('conflict');
  });
});

async function waitingForLock(db: TestApi['context']['db']): Promise<boolean> {
  const waiting = sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  return (await waiting.execute(db)).rows.length > 0;
}

describe('a role', () => {
  it('is changed by admins up to their own, and never of a member above them', async () => {
    const admin = await joinTenant(test, ada, 'admin');
    const viewer = await joinTenant(test, ada, 'viewer');
    const change = async (as: TestUser, whom: TestUser, role: string) =>
      codeOf(await test.ask('PATCH', `/v1/tenant/members/${await membershipOf(whom, ada)}`, { as, json: { role } }));
    expect(await change(viewer, viewer, 'owner')).toBe('forbidden');
    expect(await change(admin, viewer, 'developer')).toBe('ok');
    expect(await change(admin, viewer, 'admin')).toBe('ok');
    expect(await change(admin, viewer, 'owner')).toBe('forbidden');
    expect(await change(admin, ada, 'viewer')).toBe('forbidden');
    expect(await change(ada, viewer, 'owner')).toBe('ok');
    expect(codeOf(await test.ask('DELETE', `/v1/tenant/members/${await membershipOf(viewer, ada)}`, { as: admin }))).toBe(
      'forbidden',
    );
  });

  it('applies from the next request on, and a lower one ends open invitations of the member', async () => {
    const admin = await joinTenant(test, ada, 'admin');
    const open = (await invite(admin, bob.email, 'admin')).body.data;
    const path = `/v1/tenant/members/${await membershipOf(admin, ada)}`;
    await test.ask('PATCH', path, { as: ada, json: { role: 'viewer' } });
    expect(codeOf(await test.ask('POST', '/v1/apps', { as: admin, json: {} }))).toBe('forbidden');
    expect(codeOf(await accept(bob, open.token))).toBe('not_found');
  });
});
