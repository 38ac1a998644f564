import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDocumentedApi } from '#api/documented-api.ts';
import { openApiDocument } from '#api/openapi-document.ts';
import type { Role } from '#shared/database/schema.ts';
import type { UserId } from '#shared/ids.ts';
import { type Answer, createTestApi, type TestApi, type TestUser } from '#test/support/api.ts';
import type { DocumentedOperation } from '#test/support/api-contract.ts';
import { seedBuild } from '#test/support/api-seeds.ts';

let test: TestApi;
let ada: TestUser;
beforeAll(async () => {
  test = await createTestApi();
  ada = await test.signUp();
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
];

/** Of the document, at collection time. */
const operations: DocumentedOperation[] = Object.entries(openApiDocument(createDocumentedApi()).paths ?? {}).flatMap(
  ([path, item]) =>
    Object.entries(item as Record<string, Omit<DocumentedOperation, 'path' | 'method'>>).map(([method, operation]) => ({
      ...operation,
      method: method.toUpperCase(),
      path,
    })),
);
const guarded = operations.filter((operation) => !publicOperations.includes(operation.operationId));
const ofApps = guarded.filter((operation) => operation.path.startsWith('/v1/apps/{id}'));

/** A body that each operation would take. */
const bodies: Record<string, unknown> = {
  addSshKey: { name: 'laptop', public_key: 'ssh-ed25519 AAAA' },
  createApp: {},
  setGitSource: { url: null },
  startBuild: {},
  changeConfig: { GREETING: 'hello' },
  scaleProcess: { quantity: 1 },
};

function fill(path: string, values: Record<string, string>): string {
  return path.replace(/\{(\w+)\}/g, (_match, name: string) => encodeURIComponent(values[name] ?? 'x'));
}

function call(
  operation: DocumentedOperation,
  values: Record<string, string>,
  as?: TestUser,
  headers?: Record<string, string>,
): Promise<Answer> {
  const json = bodies[operation.operationId];
  return test.ask(operation.method, fill(operation.path, values), {
    ...(as === undefined ? {} : { as }),
    ...(json === undefined ? {} : { json }),
    ...(headers === undefined ? {} : { headers }),
  });
}

/** What must be the same, byte for byte: all but the request's own name and time. */
function essence({ status, headers, body }: Answer): string {
  const { request_id: _id, ts: _ts, ...rest } = body.error as Record<string, unknown>;
  const kept = [...headers].filter(([name]) => name !== 'x-request-id' && !name.startsWith('ratelimit'));
  return JSON.stringify([status, kept, rest]);
}

describe('who may enter', () => {
  it('is said by the document as the routes do it', () => {
    expect(
      operations
        .filter((operation) => operation.security.length === 0)
        .map((operation) => operation.operationId)
        .sort(),
    ).toEqual([...publicOperations].sort());
  });

  it.each(guarded)('$operationId needs a token', async (operation) => {
    const { status, body, headers } = await call(operation, { id: 'hello' });
    expect([status, body.error.code]).toEqual([401, 'unauthorized']);
    expect(headers.get('www-authenticate')).toBe('Bearer');
  });

  it.each(guarded)('$operationId refuses an expired token', async (operation) => {
    const user = await test.signUp();
    test.clock.advance(3700);
    expect((await call(operation, { id: 'hello' }, user)).status).toBe(401);
    test.clock.advance(-3700);
  });
});

describe('what belongs to another tenant', () => {
  it.each(ofApps)('is for $operationId the same as what does not exist or cannot', async (operation) => {
    const bob = await test.signUp();
    const foreign = await test.createApp(bob);
    const values = { bid: 'latest', rid: 'v1', type: 'web' };
    const missing = essence(await call(operation, { ...values, id: crypto.randomUUID() }, ada));
    for (const id of [
      foreign.id,
      foreign.name,
      'no-such-app',
      'x'.repeat(100),
      "'; drop table apps; --",
      '../../etc',
      '%00',
      '\u0000',
    ]) {
      expect(essence(await call(operation, { ...values, id }, ada))).toBe(missing);
    }
    expect(missing).toContain('"No such app."');
    // Nothing of it happened.
    const { body } = await test.ask('GET', `/v1/apps/${foreign.id}`, { as: bob });
    expect([body.data.status, body.data.git_url === null]).toEqual(['active', false]);
  });

  it('is no child of an app of mine either: builds and releases of others cannot be swapped in', async () => {
    const bob = await test.signUp();
    const [mine, foreign] = [await test.createApp(ada), await test.createApp(bob)];
    const { id: seeded } = await seedBuild(test, bob, foreign.id);
    for (const operation of ofApps.filter((each) => each.path.includes('{bid}'))) {
      const swapped = await call(operation, { id: mine.id, bid: seeded }, ada);
      const missing = await call(operation, { id: mine.id, bid: crypto.randomUUID() }, ada);
      expect(swapped.status).toBe(404);
      expect(essence(swapped)).toBe(essence(missing));
    }
  });

  it('does not show in lists', async () => {
    const bob = await test.signUp();
    await test.createApp(bob);
    const { body } = await test.ask('GET', '/v1/apps', { as: await test.signUp() });
    expect(body).toEqual({ data: [], next_cursor: null });
  });
});

describe('what a role may not do', () => {
  const changing = [
    'setGitSource',
    'startBuild',
    'cancelBuild',
    'flushBuildCache',
    'rollBack',
    'changeConfig',
    'scaleProcess',
    'restartApp',
    'deleteApp',
  ];

  it.each(changing)('%s is forbidden to a viewer', async (operationId) => {
    const operation = ofApps.find((each) => each.operationId === operationId);
    if (operation === undefined) throw new Error(`${operationId} is not documented`);
    const owner = await test.signUp();
    const app = await test.createApp(owner);
    const viewer = await join(owner, 'viewer');
    const { status, body } = await call(operation, { id: app.id, bid: 'latest', rid: 'v1', type: 'web' }, viewer);
    expect([status, body.error.code]).toEqual([403, 'forbidden']);
  });

  it('does not keep a viewer from looking', async () => {
    const owner = await test.signUp();
    const app = await test.createApp(owner);
    expect((await test.ask('GET', `/v1/apps/${app.id}`, { as: await join(owner, 'viewer') })).status).toBe(200);
  });
});

describe('what is no token of ours', () => {
  const claims = () => ({ email: ada.email, client_id: 'paas' });
  const ours = async (token: string) => {
    const header = JSON.parse(atob(token.split('.')[0] ?? '')) as { kid: string };
    return { ...header, payload: token.split('.')[1] ?? '', signature: token.split('.')[2] ?? '' };
  };
  const encode = (value: unknown): string =>
    new TextEncoder().encode(JSON.stringify(value)).toBase64({ alphabet: 'base64url', omitPadding: true });
  const statusOf = async (authorization: string): Promise<number> =>
    (await test.ask('GET', '/v1/user', { headers: { authorization } })).status;

  it('lets the very token through that all the others are made of', async () => {
    expect(await statusOf(`Bearer ${ada.token}`)).toBe(200);
    expect(await statusOf(`bearer  ${ada.token}`)).toBe(200);
  });

  it.each([
    ['another scheme', (token: string) => `Basic ${token}`],
    ['another scheme, unusual case', (token: string) => `JWT ${token}`],
    ['no scheme', (token: string) => token],
    ['no token', () => 'Bearer'],
    ['an empty token', () => 'Bearer '],
    ['two tokens in one header', (token: string) => `Bearer ${token}, Bearer ${token}`],
    ['a token with something behind it', (token: string) => `Bearer ${token} x`],
    ['a token without signature', (token: string) => `Bearer ${token.split('.').slice(0, 2).join('.')}.`],
    ['a token of another signature', (token: string) => `Bearer ${token.slice(0, -4)}AAAA`],
    ['64 KB of token', (token: string) => `Bearer ${token}${'A'.repeat(65_536)}`],
    ['five parts, as of an encrypted one', (token: string) => `Bearer ${token}.AAAA.AAAA`],
    ['dots', () => 'Bearer ..'],
  ])('refuses %s', async (_what, authorization) => {
    expect(await statusOf(authorization(ada.token))).toBe(401);
  });

  it('refuses two Authorization headers, also when both are good', async () => {
    const headers = new Headers({ 'x-test-address': '::' });
    headers.append('authorization', `Bearer ${ada.token}`);
    headers.append('authorization', `Bearer ${ada.token}`);
    expect((await test.api.request('/v1/user', { headers })).status).toBe(401);
  });

  it('is not found in the query or in a cookie', async () => {
    expect((await test.ask('GET', `/v1/user?access_token=${ada.token}`)).status).toBe(401);
    expect((await test.ask('GET', '/v1/user', { headers: { cookie: `access_token=${ada.token}` } })).status).toBe(401);
  });

  it.each([
    ['alg none', { alg: 'none' }],
    ['alg None', { alg: 'None' }],
    ['no alg', { alg: undefined }],
    ['another alg of the same key', { alg: 'ES384' }],
    ['a plain JWT', { typ: 'JWT' }],
    ['no type', { typ: undefined }],
    ['a key id that climbs', { kid: '../../../../dev/null' }],
    ['a key id of SQL', { kid: "' or 1=1 --" }],
    ['an unknown key id', { kid: 'A'.repeat(43) }],
    ['a key id that is no text', { kid: ['x'] }],
    ['no key id', { kid: undefined }],
    ['a key of its own', { jwk: { kty: 'oct', k: 'AAAA' } }],
    ['a key to fetch', { jku: 'http://127.0.0.1:1/keys' }],
    ['a critical extension', { crit: ['exp'] }],
    ['a critical extension that jose knows', { crit: ['b64'], b64: false }],
    ['compression', { zip: 'DEF' }],
    ['an encrypted one, with many rounds', { alg: 'PBES2-HS256+A128KW', enc: 'A256GCM', p2c: 2_147_483_647, p2s: 'AAAA' }],
  ])('refuses a header with %s', async (_what, change) => {
    const { kid, payload, signature } = await ours(ada.token);
    const header = { alg: 'ES256', typ: 'at+jwt', kid, ...change };
    expect(await statusOf(`Bearer ${encode(header)}.${payload}.${signature}`)).toBe(401);
    expect(await statusOf(`Bearer ${encode(header)}.${payload}.`)).toBe(401);
  });

  it('refuses a MAC made with the public key', async () => {
    const { keys } = await test.identity.readKeys();
    const { kid } = await ours(ada.token);
    const secret = new TextEncoder().encode(JSON.stringify(keys.find((key) => key.kid === kid)));
    const token = await new SignJWT(claims())
      .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt', kid })
      .setIssuer('http://localhost:8080/v1/auth')
      .setAudience('paas')
      .setSubject(ada.id)
      .setJti('x')
      .setIssuedAt()
      .setExpirationTime('1h')
      .sign(secret);
    expect(await statusOf(`Bearer ${token}`)).toBe(401);
  });

  it("refuses a stranger's signature under the name of our key", async () => {
    const { privateKey, publicKey } = await generateKeyPair('ES256');
    const { kid } = await ours(ada.token);
    const token = await new SignJWT(claims())
      .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid, jwk: await exportJWK(publicKey) })
      .setIssuer('http://localhost:8080/v1/auth')
      .setAudience('paas')
      .setSubject(ada.id)
      .setJti('x')
      .setIssuedAt()
      .setExpirationTime('1h')
      .sign(privateKey);
    expect(await statusOf(`Bearer ${token}`)).toBe(401);
  });

  it('refuses a refresh token', async () => {
    expect(await statusOf(`Bearer ${ada.refreshToken}`)).toBe(401);
  });
});

describe('the published issuer', () => {
  it('leads to the keys that verify its tokens', async () => {
    const { body: facts } = await test.ask('GET', '/v1/auth/.well-known/openid-configuration');
    expect(facts.issuer).toBe('http://localhost:8080/v1/auth');
    expect(facts.jwks_uri).toBe(`${facts.issuer}/jwks.json`);
    const { body: jwks } = await test.ask('GET', new URL(facts.jwks_uri).pathname);
    const header = JSON.parse(atob(ada.token.split('.')[0] ?? '')) as { kid: string };
    expect(jwks.keys.map((key: { kid: string }) => key.kid)).toContain(header.kid);
    expect(JSON.stringify(jwks)).not.toContain('"d"');
  });
});

/** Another user, moved into the tenant of `owner`. */
async function join(owner: TestUser, role: Role): Promise<TestUser> {
  const user = await test.signUp();
  await test.context.db
    .updateTable('memberships')
    .set({ tenant_id: owner.tenantId as never, role })
    .where('user_id', '=', user.id as UserId)
    .execute();
  return user;
}
