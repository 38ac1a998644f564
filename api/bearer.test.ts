/** Every operation of the OpenAPI document with every kind of invalid token. Some are signed with the right key, the hardest case. */

import { createHash } from 'node:crypto';
import { exportJWK, generateKeyPair, importJWK, type JWK, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { millisecondsPerDay, secondsPerDay, secondsPerHour } from '#shared/durations.ts';
import { announcedSeconds, signingDays } from '#shared/identity/signing-keys.ts';
import { apiRunsHere, apiRuntime } from '#test/support/api/api-runtime.ts';
import { call, guardedOperations } from '#test/support/api/operations.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
let ourKey: Awaited<ReturnType<typeof importJWK>>;
let kid: string;
beforeAll(async () => {
  test = await createTestApi();
  ada = await test.signUp();
  const [stored] = await test.signingKeys.list(new Date(0));
  if (stored === undefined) throw new Error('no signing key');
  kid = stored.id;
  ourKey = await importJWK(JSON.parse(stored.privateJwk) as JWK, 'ES256');
});
afterAll(() => test?.close());

/** The HTTP server of these refuses so long a header before the API sees it. */
const hasLongHeaders = apiRunsHere || apiRuntime === 'workerd';

const sixtyFourKilobytes: [string, (token: string) => string] = [
  '64 KB of token',
  (token) => `Bearer ${token}${'A'.repeat(65_536)}`,
];

type Parts = Record<string, unknown>;
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const seconds = (): number => Math.floor(test.clock.now().getTime() / 1000);
const goodHeader = (): Parts => ({ alg: 'ES256', typ: 'at+jwt', kid });
const goodClaims = (): Parts => ({
  iss: 'http://localhost:8080/v1/auth',
  aud: 'paas',
  sub: ada.id,
  jti: 'x',
  iat: seconds(),
  exp: seconds() + secondsPerHour,
  email: ada.email,
  client_id: 'paas',
});

/** A token signed with the right key, whatever its header says. Undefined members are left out. */
async function sign(claims: Parts = {}, header: Parts = {}, key = ourKey): Promise<string> {
  const input = `${encode({ ...goodHeader(), ...header })}.${encode({ ...goodClaims(), ...claims })}`;
  const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, key as CryptoKey, Buffer.from(input));
  return `${input}.${Buffer.from(signature).toString('base64url')}`;
}

async function expectRefusedEverywhere(headers: Record<string, string>): Promise<void> {
  const answers = await Promise.all(
    guardedOperations.map(async (operation) => {
      const { status, body } = await call(test, operation, { id: 'hello' }, undefined, headers);
      return [operation.operationId, status, body.error.code];
    }),
  );
  expect(answers).toEqual(guardedOperations.map(({ operationId }) => [operationId, 401, 'unauthorized']));
}

const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });
const statusOf = async (headers: Record<string, string>): Promise<number> =>
  (await test.ask('GET', '/v1/user', { headers })).status;

it('accepts a token that is made like those of the platform, so that the tests below fail for their claims only', async () => {
  expect(await statusOf(bearer(await sign()))).toBe(200);
  expect(await statusOf({ authorization: `bearer  ${ada.token}` })).toBe(200);
});

describe('every operation refuses a token of the right key with', () => {
  it.each<[string, () => Parts]>([
    ['another issuer', () => ({ iss: 'http://localhost:8080' })],
    ['no issuer', () => ({ iss: undefined })],
    ['another audience', () => ({ aud: 'paas-admin' })],
    ['no audience', () => ({ aud: undefined })],
    ['no subject', () => ({ sub: undefined })],
    ['a subject that is no text', () => ({ sub: [ada.id] })],
    ['no email', () => ({ email: undefined })],
    ['no token id', () => ({ jti: undefined })],
    ['no issue time', () => ({ iat: undefined })],
    ['no expiry', () => ({ exp: undefined })],
    ['an expiry in the past', () => ({ exp: seconds() - 6 })],
    ['an expiry that is text', () => ({ exp: '9999999999' })],
    ['a not-before time in the future', () => ({ nbf: seconds() + 60 })],
  ])('%s', async (_what, claims) => {
    await expectRefusedEverywhere(bearer(await sign(claims())));
  });

  it.each<[string, Parts]>([
    ['alg none', { alg: 'none' }],
    ['alg None', { alg: 'None' }],
    ['no alg', { alg: undefined }],
    ['a MAC', { alg: 'HS256' }],
    ['another alg', { alg: 'ES384' }],
    ['a plain JWT', { typ: 'JWT' }],
    ['no type', { typ: undefined }],
    ['a key id that is a path', { kid: '../../../../dev/null' }],
    ['a key id with SQL', { kid: "' or 1=1 --" }],
    ['a key id that is no text', { kid: ['x'] }],
    ['no key id', { kid: undefined }],
    ['a critical extension', { crit: ['exp'] }],
    ['a critical extension that the library knows', { crit: ['b64'], b64: false }],
    ['encryption with many rounds', { alg: 'PBES2-HS256+A128KW', enc: 'A256GCM', p2c: 2_147_483_647, p2s: 'AAAA' }],
  ])('a header with %s', async (_what, header) => {
    await expectRefusedEverywhere(bearer(await sign({}, header)));
  });

  it.runIf(hasLongHeaders)('64 KB of claims', async () => {
    await expectRefusedEverywhere(bearer(await sign({ padding: 'x'.repeat(65_536) })));
  });
});

describe('every operation refuses', () => {
  it('a MAC whose secret is the public key in any of its forms', async () => {
    const jwk = (await test.identity.readKeys()).keys.find((key) => key.kid === kid);
    for (const secret of [JSON.stringify(jwk), String(jwk?.x), createHash('sha256').update(JSON.stringify(jwk)).digest('hex')]) {
      const token = await new SignJWT(goodClaims())
        .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt', kid })
        .sign(Buffer.from(secret));
      await expectRefusedEverywhere(bearer(token));
    }
  });

  it('another key: with the id of ours, sent in the header, or at an address to fetch it from', async () => {
    const { privateKey, publicKey } = await generateKeyPair('ES256');
    const headers = [{}, { jwk: await exportJWK(publicKey) }, { jku: 'http://127.0.0.1:1/keys' }, { kid: 'A'.repeat(43) }];
    for (const header of headers) await expectRefusedEverywhere(bearer(await sign({}, header, privateKey)));
  });

  it.each<[string, (token: string) => string]>([
    ['another scheme', (token: string) => `Basic ${token}`],
    ['an unknown scheme', (token: string) => `JWT ${token}`],
    ['no scheme', (token: string) => token],
    ['no token', () => 'Bearer'],
    ['an empty token', () => 'Bearer '],
    ['two tokens in one header', (token: string) => `Bearer ${token}, Bearer ${token}`],
    ['a token with more text after it', (token: string) => `Bearer ${token} x`],
    ['a token without signature', (token: string) => `Bearer ${token.split('.').slice(0, 2).join('.')}.`],
    ['a token of another signature', (token: string) => `Bearer ${token.slice(0, -4)}AAAA`],
    [
      'a token with other claims under its signature',
      (token: string) => `Bearer ${token.replace(/\.[^.]+\./, `.${encode({ sub: 'x' })}.`)}`,
    ],
    ...(hasLongHeaders ? [sixtyFourKilobytes] : []),
    ['five parts, like an encrypted token', (token: string) => `Bearer ${token}.AAAA.AAAA`],
    ['dots', () => 'Bearer ..'],
    ['a refresh token', () => `Bearer ${ada.refreshToken}`],
    ['an API token that does not exist', () => `Bearer paas_${'A'.repeat(43)}`],
  ])('%s', async (_what, authorization) => {
    await expectRefusedEverywhere({ authorization: authorization(ada.token) });
  });

  it('two Authorization headers, also when both are valid', async () => {
    for (const [index, { method, path }] of guardedOperations.entries()) {
      const headers = new Headers({ 'x-test-address': `198.51.100.${index}` });
      headers.append('authorization', `Bearer ${ada.token}`);
      headers.append('authorization', `Bearer ${ada.token}`);
      expect((await test.request(path.replace(/\{\w+\}/g, 'x'), { method, headers })).status).toBe(401);
    }
  });

  it('a token in the query, in a cookie or in another header', async () => {
    expect((await test.ask('GET', `/v1/user?access_token=${ada.token}`)).status).toBe(401);
    await expectRefusedEverywhere({ cookie: `access_token=${ada.token}` });
    await expectRefusedEverywhere({ 'x-access-token': ada.token, 'proxy-authorization': `Bearer ${ada.token}` });
  });
});

describe('the published issuer', () => {
  it('leads to the keys that verify its tokens, and to no private key', async () => {
    const { body: facts } = await test.ask('GET', '/v1/auth/.well-known/openid-configuration');
    expect(facts.issuer).toBe('http://localhost:8080/v1/auth');
    expect(facts.jwks_uri).toBe(`${facts.issuer}/jwks.json`);
    const { body: jwks } = await test.ask('GET', new URL(facts.jwks_uri).pathname);
    expect(jwks.keys.map((key) => key.kid)).toContain(kid);
    expect(JSON.stringify(jwks)).not.toContain('"d"');
  });

  it('advertises no OAuth endpoint and no grant, because the login is JSON', async () => {
    const { body: facts } = await test.ask('GET', '/v1/auth/.well-known/openid-configuration');
    expect(Object.keys(facts).filter((name) => name.endsWith('_endpoint'))).toEqual([]);
    expect(facts).toMatchObject({ response_types_supported: [], grant_types_supported: [] });
  });

  // Another process has a clock of its own.
  it.runIf(apiRunsHere)(
    'rotates keys without ending a session: both are published until all tokens of the old key have expired',
    async () => {
      const { body: before } = await test.ask('GET', '/v1/auth/jwks.json');
      test.clock.advance(signingDays * millisecondsPerDay);
      await test.identity.rotateKeys();
      const { body: during } = await test.ask('GET', '/v1/auth/jwks.json');
      expect(during.keys).toHaveLength(before.keys.length + 1);
      const old = await test.signUp();
      test.clock.advance(announcedSeconds * 1000);
      const young = await test.signUp();
      expect(await statusOf(bearer(old.token))).toBe(200);
      expect(await statusOf(bearer(young.token))).toBe(200);
      expect(young.token.split('.')[0]).not.toBe(old.token.split('.')[0]);
      // An hour, plus the time until each process knows about it.
      test.clock.advance((secondsPerHour + 300) * 1000);
      const { body: after } = await test.ask('GET', '/v1/auth/jwks.json');
      expect(after.keys.map((key) => key.kid)).not.toContain(kid);
      expect(await statusOf(bearer(await sign({ exp: seconds() + 60 })))).toBe(401);
      test.clock.advance((-(secondsPerHour + 300) - announcedSeconds - signingDays * secondsPerDay) * 1000);
    },
  );
});
