/** Route by caller by child id, generated from the OpenAPI document: a new route is tested without being named here. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Role } from '#shared/core/accounts/principals.ts';
import { apiRunsHere } from '#test/support/api/api-runtime.ts';
import { call, essence, guardedOperations, type Operation, operations, pathParameters } from '#test/support/api/operations.ts';
import { type PathValues, seedWorld } from '#test/support/api/seed-world.ts';
import { joinTenant } from '#test/support/api/seeds.ts';
import { type Answer, createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
/** Another user, with one of every resource too. */
let bob: TestUser;
let foreign: PathValues;
/** A tenant with a member of each role. */
let owner: TestUser;
let teamWorld: PathValues;
const team = new Map<Role, TestUser>();
beforeAll(async () => {
  test = await createTestApi();
  bob = await test.signUp();
  foreign = await seedWorld(test, bob);
  owner = await test.signUp();
  teamWorld = await seedWorld(test, owner);
  for (const role of roles) team.set(role, await joinTenant(test, owner, role));
});
afterAll(() => test?.close());

const publicOperations = [
  'readHealth',
  'readOpenApiJson',
  'readOpenApiYaml',
  'readKeys',
  'readIssuer',
  'signUp',
  'logIn',
  'refreshTokens',
  'logOut',
  'receiveDelivery',
  'fetchBuildSource',
  'reportBuildCompletion',
];

/** The lowest role that has permission. Default: viewer to read, developer to change. */
const leastRoles: Record<string, Role> = {
  readConfig: 'developer',
  readGitSource: 'developer',
  listSourceDeliveries: 'developer',
  deleteApp: 'admin',
  deleteAddon: 'admin',
  readAddonCredentials: 'developer',
  restoreApp: 'admin',
  invite: 'admin',
  listInvitations: 'admin',
  withdrawInvitation: 'admin',
  changeRole: 'admin',
  removeMember: 'admin',
  // Resources of the caller: any role.
  addSshKey: 'viewer',
  deleteSshKey: 'viewer',
  createApiToken: 'viewer',
  revokeApiToken: 'viewer',
  endSession: 'viewer',
  endSessions: 'viewer',
  changeUser: 'viewer',
  acceptInvitation: 'viewer',
};
const roles: readonly Role[] = ['viewer', 'developer', 'admin', 'owner'];

/** Operations on a deleted app. */
const ofDeleted = ['readApp', 'restoreApp'];
/** Resources that belong to a user, not to a tenant: other members do not see them. */
const personal = ['key', 'token_id', 'session_id'];

const ofApps = guardedOperations.filter(({ path }) => path.startsWith('/v1/apps/{id}'));
const childOf = (operation: Operation): string | undefined => pathParameters(operation).findLast((name) => name !== 'id');
const withChild = guardedOperations.filter((operation) => childOf(operation) !== undefined);
/** Names within a release or a repository: they cannot belong to another app. */
const named = ['type', 'addon_type', 'revision', 'range'];

const codeOf = ({ status, body }: Answer): string => (status < 400 ? 'ok' : body.error.code);
const leastRole = ({ operationId, method }: Operation): Role =>
  leastRoles[operationId] ?? (method === 'GET' ? 'viewer' : 'developer');

/** Creates, before the tests of a group, a user with one of every resource. */
function seededForEach(): { ada: TestUser; world: Record<string, string> } {
  const ada = {} as TestUser;
  const world: Record<string, string> = {};
  beforeAll(async () => {
    Object.assign(ada, await test.signUp());
    Object.assign(world, await seedWorld(test, ada));
  });
  return { ada, world };
}

/** Calls as a new member of `team`. */
async function newMembership(): Promise<string> {
  const { id } = await joinTenant(test, owner, 'viewer');
  const { body } = await test.ask('GET', '/v1/tenant/members', { as: owner });
  return body.data.find(({ user_id }) => user_id === id)?.id ?? '';
}

async function expectSame(answers: readonly Promise<Answer>[]): Promise<string> {
  const [first, ...rest] = (await Promise.all(answers)).map(essence);
  for (const other of rest) expect(other).toBe(first);
  return first ?? '';
}

describe('the document', () => {
  it('lists no other public operation than these', () => {
    const open = operations.filter((operation) => !guardedOperations.includes(operation)).map(({ operationId }) => operationId);
    expect(open.sort()).toEqual([...publicOperations].sort());
  });
});

describe.each(guardedOperations)('$operationId', (operation) => {
  const { ada, world } = seededForEach();
  const isPersonal = personal.some((name) => pathParameters(operation).includes(name));

  it('allows its owner', async () => {
    for (const name of pathParameters(operation))
      expect(world[name], `seed {${name}} in test/support/api/seed-world.ts`).toBeTruthy();
    const code = codeOf(await call(test, operation, await seedWorld(test, ada), ada));
    // The token of an invitation is a secret, which the document does not contain.
    const expected = operation.operationId === 'acceptInvitation' ? ['not_found'] : ['ok', 'conflict', 'validation_failed'];
    expect(expected).toContain(code);
  });

  it('refuses a request without a token before anything else', async () => {
    const refusal = await expectSame([
      call(test, operation, world),
      call(test, operation, { ...world, id: crypto.randomUUID() }),
      call(test, operation, {}),
    ]);
    expect(refusal).toContain('[401,');
    expect(refusal).toContain('["www-authenticate","Bearer"]');
  });

  it('refuses expired, revoked and unknown tokens', async () => {
    const made = await test.ask('POST', '/v1/auth/tokens', { as: ada, json: { name: 'ci', scope: 'full', expires_in_days: 1 } });
    const expiring = { ...ada, token: made.body.data.token };
    const revoked = await test.ask('POST', '/v1/auth/tokens', { as: ada, json: { name: 'ci', scope: 'full' } });
    await test.ask('DELETE', `/v1/auth/tokens/${revoked.body.data.id}`, { as: ada });
    test.clock.advance(86_401 * 1000);
    // Another process has a clock of its own.
    const expired = apiRunsHere ? [ada, expiring] : [];
    for (const as of [...expired, { ...ada, token: revoked.body.data.token }, { ...ada, token: 'paas_x' }]) {
      expect(codeOf(await call(test, operation, world, as))).toBe('unauthorized');
    }
    test.clock.advance(-86_401 * 1000);
  });

  it('refuses to act in a tenant that the caller does not belong to', async () => {
    await expectSame([
      call(test, operation, world, bob, { 'x-paas-tenant': ada.tenantId }),
      call(test, operation, world, bob, { 'x-paas-tenant': 'zzzzzzzz' }),
    ]);
    expect(codeOf(await call(test, operation, world, bob, { 'x-paas-tenant': ada.tenantId }))).toBe('forbidden');
  });

  it('allows each role what the role permits', async () => {
    // The test clock stands still, and all operations together exceed the limit of a minute.
    test.clock.advance(10 * 1000);
    for (const [role, member] of team) {
      const allowed = roles.indexOf(role) >= roles.indexOf(leastRole(operation));
      const values = operation.method === 'GET' ? { ...teamWorld } : await seedWorld(test, owner);
      if (pathParameters(operation).includes('member')) values['member'] = await newMembership();
      const code = codeOf(await call(test, operation, values, member));
      const expected = allowed ? ['ok', 'conflict', 'validation_failed', 'not_found'] : ['forbidden'];
      expect(isPersonal ? ['not_found'] : expected, role).toContain(code);
    }
  });
});

describe.each(ofApps)('$operationId, of an app,', (operation) => {
  const { ada, world } = seededForEach();

  it('does not find an app of another tenant, by id or name, or one that cannot exist', async () => {
    const { body } = await test.ask('GET', `/v1/apps/${world['id']}`, { as: ada });
    const ids = [
      world['id'] ?? '',
      body.data.name,
      'no-such-app',
      'x'.repeat(100),
      "'; drop table apps; --",
      '../../etc',
      '%00',
      '\u0000',
    ];
    const missing = call(test, operation, { ...world, id: crypto.randomUUID() }, bob);
    const refusal = await expectSame([missing, ...ids.map((id) => call(test, operation, { ...world, id }, bob))]);
    expect(refusal).toContain('[404,');
    expect(refusal).toContain('No such app.');
    expect((await test.ask('GET', `/v1/apps/${world['id']}`, { as: ada })).body).toEqual(body);
  });

  it('finds a deleted app only to read or restore it', async () => {
    const deleted = await seedWorld(test, ada);
    await test.ask('DELETE', `/v1/apps/${deleted['id']}`, { as: ada });
    const missing = await call(test, operation, { ...deleted, id: crypto.randomUUID() }, ada);
    const answer = await call(test, operation, deleted, ada);
    expect(missing.status).toBe(404);
    if (ofDeleted.includes(operation.operationId)) expect(codeOf(answer)).toBe('ok');
    else expect(essence(answer)).toBe(essence(missing));
  });
});

describe.each(withChild)('$operationId', (operation) => {
  const child = childOf(operation) ?? '';
  const { ada, world } = seededForEach();

  it(`does not find a {${child}} that is missing or malformed`, async () => {
    const values = [crypto.randomUUID(), 'x', 'x'.repeat(200), "' or 1=1 --", '../..', '%2e%2e', '\u0000', '0', '-1'];
    const answers = values.map((value) => call(test, operation, { ...world, [child]: value }, ada));
    if (named.includes(child)) {
      for (const answer of await Promise.all(answers)) expect(['not_found', 'validation_failed']).toContain(codeOf(answer));
    } else expect(await expectSame(answers)).toContain('[404,');
  });
});

describe.each(withChild.filter((operation) => !named.includes(childOf(operation) ?? '')))('$operationId', (operation) => {
  const child = childOf(operation) ?? '';
  const { ada, world } = seededForEach();

  it(`does not find a {${child}} of another tenant or of another app`, async () => {
    const sibling = operation.path.startsWith('/v1/apps/{id}') ? await seedWorld(test, ada) : foreign;
    const refusal = await expectSame([
      call(test, operation, { ...world, [child]: crypto.randomUUID() }, ada),
      call(test, operation, { ...world, [child]: foreign[child] ?? '' }, ada),
      call(test, operation, { ...world, [child]: sibling[child] ?? '' }, ada),
    ]);
    expect(refusal).toContain('[404,');
  });
});

describe('lists', () => {
  it('contain nothing of another tenant', async () => {
    await seedWorld(test, await test.signUp());
    const ada = await test.signUp();
    for (const operation of guardedOperations.filter(({ method, path }) => method === 'GET' && !path.includes('{'))) {
      const { body } = await call(test, operation, {}, ada);
      if (operation.operationId === 'listQuotas') {
        for (const { used } of body.data as unknown as { used: number }[]) expect(used).toBe(0);
        continue;
      }
      if (!Array.isArray(body.data) || ['listTenants', 'listMembers', 'listSessions'].includes(operation.operationId)) continue;
      expect([operation.operationId, body]).toEqual([operation.operationId, { data: [], next_cursor: null }]);
    }
    const { body } = await test.ask('GET', '/v1/tenant/members', { as: ada });
    expect(body.data.map(({ email }) => email)).toEqual([ada.email]);
  });
});
