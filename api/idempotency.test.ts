import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApi } from '#api/create-api.ts';
import { abandonedSeconds, type IdempotencyKeys } from '#shared/idempotency/idempotency.ts';
import { createPostgresIdempotencyKeys } from '#shared/idempotency/postgres-idempotency.ts';
import { seedRelease } from '#test/support/api/seeds.ts';
import { type Answer, createTestApi, type TestApi, type TestUser, testPassword } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
beforeAll(async () => {
  test = await createTestApi();
  ada = await test.signUp();
});
afterAll(() => test?.close());

const create = (key: string, json: unknown = {}, as: TestUser = ada): Promise<Answer> =>
  test.ask('POST', '/v1/apps', { as, json, headers: { 'idempotency-key': key } });

/** A public key in OpenSSH format. */
function newPublicKey(): string {
  const { x = '' } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
  const parts = [Buffer.from('ssh-ed25519'), Buffer.from(x, 'base64url')];
  const blob = Buffer.concat(parts.flatMap((part) => [Buffer.from([0, 0, 0, part.length]), part]));
  return `ssh-ed25519 ${blob.toString('base64')} laptop`;
}

async function countApps(as: TestUser): Promise<number> {
  return (await test.ask('GET', '/v1/apps?limit=200', { as })).body.data.length;
}

describe('a POST with an Idempotency-Key', () => {
  it('is executed once, and its first answer is repeated, also under the other prefix', async () => {
    const first = await create('once');
    const again = await create('once');
    expect(first.status).toBe(201);
    expect([again.status, again.body]).toEqual([201, first.body]);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    const prefixed = await test.ask('POST', '/api/v1/apps', { as: ada, json: {}, headers: { 'idempotency-key': 'once' } });
    expect(prefixed.body).toEqual(first.body);
  });

  it('is executed once when many arrive at the same time', async () => {
    const user = await test.signUp();
    const answers = await Promise.all(Array.from({ length: 10 }, () => create('at-once', {}, user)));
    expect(answers.filter((answer) => answer.status === 201 || answer.status === 409)).toHaveLength(10);
    expect(await countApps(user)).toBe(1);
    expect((await create('at-once', {}, user)).status).toBe(201);
    expect(await countApps(user)).toBe(1);
  });

  it('is a conflict when the same key comes with another body', async () => {
    await create('body', { branch: 'main' });
    const other = await create('body', { branch: 'trunk' });
    expect([other.status, other.body.error.code]).toEqual([409, 'conflict']);
  });

  it('is a conflict when the same key comes with another path', async () => {
    const app = await test.createApp(ada);
    await create('path');
    const other = await test.ask('POST', `/v1/apps/${app.id}/builds`, {
      as: ada,
      json: {},
      headers: { 'idempotency-key': 'path' },
    });
    expect(other.status).toBe(409);
  });

  it('is independent of the same key of another user', async () => {
    const bob = await test.signUp();
    const [mine, theirs] = [await create('shared'), await create('shared', {}, bob)];
    expect(theirs.body.data.tenant_id).toBe(bob.tenantId);
    expect(theirs.body.data.id).not.toBe(mine.body.data.id);
  });

  it('that was refused can be corrected and sent again with the same key', async () => {
    expect((await create('fixed', { name: 'Not A Name' })).status).toBe(422);
    expect((await create('fixed', { branch: 7 })).status).toBe(422);
    expect((await create('fixed')).status).toBe(201);
  });

  it.each(['', 'two words', 'x'.repeat(256)])('refuses %j as a key', async (key) => {
    expect((await create(key)).status).toBe(422);
  });

  it.each([
    ['an API token', '/v1/auth/tokens', { name: 'ci', scope: 'read' }],
    ['an invitation', '/v1/tenant/invitations', { email: 'bob@example.com', role: 'viewer' }],
  ])('that creates %s shows the same secret again, which is stored sealed', async (_what, path, json) => {
    const user = await test.signUp();
    const api = createApi({ ...test.apiOptions, idempotencyKeys: createPostgresIdempotencyKeys(test.context) });
    const ask = async () => {
      const answer = await api.request(path, {
        method: 'POST',
        headers: { authorization: `Bearer ${user.token}`, 'content-type': 'application/json', 'idempotency-key': 'secret' },
        body: JSON.stringify(json),
      });
      return { status: answer.status, body: (await answer.json()) as Answer['body'] };
    };
    const first = await ask();
    expect(first.status).toBe(201);
    expect(await ask()).toEqual(first);
    expect((await test.ask('GET', path, { as: user })).body.data).toHaveLength(1);
    const stored = JSON.stringify(await test.context.db.selectFrom('idempotency_keys').selectAll().execute());
    expect(stored).not.toContain((first.body.data as { token?: string }).token ?? '?');
  });

  describe('that signs somebody up', () => {
    const signUp = (json: object, key: string) => test.ask('POST', '/v1/signup', { json, headers: { 'idempotency-key': key } });
    const newEmail = () => `${crypto.randomUUID()}@example.com`;

    it('finds the user that it created before, for who has the password', async () => {
      const json = { email: newEmail(), password: testPassword };
      const first = await signUp(json, 'one');
      const again = await signUp(json, 'one');
      expect([first.status, again.status]).toEqual([201, 201]);
      expect([again.body.data.user, again.body.data.tenant]).toEqual([first.body.data.user, first.body.data.tenant]);
      const as = { ...ada, token: again.body.data.access_token };
      expect((await test.ask('GET', '/v1/user', { as })).body.data.id).toBe(first.body.data.user.id);
    });

    it('creates one user when many arrive at once', async () => {
      const json = { email: newEmail(), password: testPassword };
      const answers = await Promise.all(Array.from({ length: 5 }, () => signUp(json, 'many')));
      expect(answers.filter(({ status }) => status !== 201 && status !== 409)).toEqual([]);
      const ids = answers.filter(({ status }) => status === 201).map(({ body }) => body.data.user.id);
      expect(new Set(ids).size).toBe(1);
      expect((await signUp(json, 'many')).body.data.user.id).toBe(ids[0]);
    });

    it('joins by an invitation once, and answers again although the invitation is used', async () => {
      const email = newEmail();
      const invited = await test.ask('POST', '/v1/tenant/invitations', { as: ada, json: { email, role: 'viewer' } });
      const token = (invited.body.data as { token?: string }).token ?? '';
      const json = { email, password: testPassword, invitation_token: token };
      const [first, again] = [await signUp(json, 'invited'), await signUp(json, 'invited')];
      expect([first.status, again.status]).toEqual([201, 201]);
      expect(again.body.data.tenant).toEqual(first.body.data.tenant);
    });

    it.each([
      ['another password', { password: 'something else' }],
      ['another body', { tenant_name: 'Other' }],
    ])('is a conflict with %s', async (_what, other) => {
      const json = { email: newEmail(), password: testPassword };
      expect((await signUp(json, 'same')).status).toBe(201);
      const again = await signUp({ ...json, ...other }, 'same');
      expect([again.status, again.body.error.code]).toEqual([409, 'conflict']);
    });
  });

  describe('whose process dies after it created something and before it answered', () => {
    /** A process that dies when it should store the answer. */
    const startDying = (): { died: Promise<void>; api: TestApi['api'] } => {
      const death = Promise.withResolvers<void>();
      const idempotencyKeys: IdempotencyKeys = {
        ...createKeys(),
        complete: () => {
          death.resolve();
          return new Promise(() => undefined);
        },
      };
      return { died: death.promise, api: createApi({ ...test.apiOptions, idempotencyKeys }) };
    };
    const createKeys = () => createPostgresIdempotencyKeys(test.context);
    const ask = (api: TestApi['api'], path: string, json: unknown, key: string) =>
      api.request(path, {
        method: 'POST',
        headers: { authorization: `Bearer ${ada.token}`, 'content-type': 'application/json', 'idempotency-key': key },
        body: JSON.stringify(json),
      });
    const makeTwice = async (path: string, json: unknown): Promise<Answer['body']['data']> => {
      const key = crypto.randomUUID();
      const dying = startDying();
      void ask(dying.api, path, json, key);
      await dying.died;
      const next = createApi({ ...test.apiOptions, idempotencyKeys: createKeys() });
      expect((await ask(next, path, json, key)).status).toBe(409);
      test.clock.advance(abandonedSeconds * 1000);
      const found = await ask(next, path, json, key);
      const body = (await found.json()) as Answer['body'];
      expect([found.status, body.error]).toEqual([201, undefined]);
      const again = await ask(next, path, json, key);
      expect([again.headers.get('idempotency-replayed'), await again.json()]).toEqual(['true', body]);
      return body.data;
    };

    it('creates one app', async () => {
      const before = await countApps(ada);
      const { id } = await makeTwice('/v1/apps', {});
      expect(await countApps(ada)).toBe(before + 1);
      expect((await test.ask('GET', `/v1/apps/${id}`, { as: ada })).status).toBe(200);
    });

    it('creates one app with a name, and does not answer that the name is taken', async () => {
      const name = `once-${crypto.randomUUID().slice(0, 8)}`;
      expect((await makeTwice('/v1/apps', { name })).name).toBe(name);
    });

    it('starts one build', async () => {
      const app = await test.createApp(ada);
      const json = { url: 'https://git.example.com/ada/hello.git' };
      await test.ask('PUT', `/v1/apps/${app.id}/git`, { as: ada, json });
      const { id } = await makeTwice(`/v1/apps/${app.id}/builds`, {});
      const builds = await test.ask('GET', `/v1/apps/${app.id}/builds`, { as: ada });
      expect(builds.body.data.map((build) => build.id)).toEqual([id]);
    });

    it('rolls back once', async () => {
      const app = await test.createApp(ada);
      await seedRelease(test, ada, app.id);
      await makeTwice(`/v1/apps/${app.id}/deploys/v1/rollback`, {});
      const { body } = await test.ask('GET', `/v1/apps/${app.id}/releases`, { as: ada });
      expect(body.data.map(({ version }) => version)).toEqual([2, 1]);
    });

    it('adds one SSH key, and does not answer that the key exists', async () => {
      const public_key = newPublicKey();
      const { fingerprint } = await makeTwice('/v1/auth/ssh-keys', { name: 'laptop', public_key });
      expect(fingerprint).toMatch(/^SHA256:/);
    });
  });

  it('without an answer can be repeated at once, and finds what was created', async () => {
    const { createApp } = test.services.apps;
    let failures = 1;
    const apps = {
      ...test.services.apps,
      createApp: async (...request: Parameters<typeof createApp>) => {
        const app = await createApp(...request);
        if (failures-- > 0) throw new Error('the connection to the database was lost');
        return app;
      },
    };
    const api = createApi({ ...test.apiOptions, services: { ...test.services, apps } });
    const user = await test.signUp();
    const headers = {
      authorization: `Bearer ${user.token}`,
      'content-type': 'application/json',
      'idempotency-key': 'unknown-end',
    };
    const send = () => api.request('/v1/apps', { method: 'POST', headers, body: '{}' });
    expect((await send()).status).toBe(500);
    expect((await send()).status).toBe(201);
    expect(await countApps(user)).toBe(1);
  });

  it('stores no answer of a public route', async () => {
    const body = { json: { refresh_token: 'unknown' }, headers: { 'idempotency-key': 'public' } };
    expect((await test.ask('POST', '/v1/auth/refresh', body)).status).toBe(401);
    expect((await test.ask('POST', '/v1/auth/logout', body)).status).toBe(204);
  });
});
