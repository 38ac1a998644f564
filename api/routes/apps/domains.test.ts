import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

describe('domains of an app', () => {
  let test: TestApi;
  let user: TestUser;
  let app: { id: string; name: string };
  beforeAll(async () => {
    test = await createTestApi();
    user = await test.signUp();
    app = await test.createApp(user);
  });
  afterAll(() => test.close());

  const add = (host: unknown, as = user, id = app.id) => test.ask('POST', `/v1/apps/${id}/domains`, { as, json: { host } });
  const hosts = async (as = user, id = app.id) =>
    (await test.ask('GET', `/v1/apps/${id}/domains`, { as })).body.data.map((domain) => domain.host);

  it('201: added and active at once on a platform that is not public, listed oldest first; 204: removed', async () => {
    const added = await add('Shop.Example.com');
    expect([added.status, added.body.data]).toMatchObject([
      201,
      { host: 'shop.example.com', status: 'active', proof: null, certificate: { status: 'pending', expires_at: null } },
    ]);
    test.clock.advance(1 * 1000);
    await add('a.example.com');
    expect(await hosts()).toEqual(['shop.example.com', 'a.example.com']);
    expect((await test.ask('DELETE', `/v1/apps/${app.name}/domains/SHOP.example.com`, { as: user })).status).toBe(204);
    expect(await hosts()).toEqual(['a.example.com']);
  });

  it('200: added again', async () => {
    expect([(await add('twice.test')).status, (await add('twice.test')).status]).toEqual([201, 200]);
  });

  it('409: belongs to another app, which is named if it is your own', async () => {
    const mine = await test.createApp(user);
    const stranger = await test.signUp();
    const theirs = await test.createApp(stranger);
    expect((await add('taken.test')).status).toBe(201);
    const own = await add('taken.test', user, mine.id);
    expect([own.status, own.body.error.message]).toEqual([409, `taken.test is on your app ${app.name}. Remove it there first.`]);
    const other = await add('taken.test', stranger, theirs.id);
    expect([other.status, other.body.error.message]).toEqual([409, 'taken.test is taken. Choose another.']);
  });

  it('409: more than an app can have', async () => {
    const full = await test.createApp(user);
    for (let count = 0; count < 50; count += 1) expect((await add(`n${count}.test`, user, full.id)).status).toBe(201);
    expect((await add('n50.test', user, full.id)).status).toBe(409);
  });

  it.each(['*.example.com', 'apps.localhost', 'other.apps.localhost', 'localhost', '10.0.0.1', '-a.test', 'a.test/b', ''])(
    '422: %j',
    async (host) => {
      const { status, body } = await add(host);
      expect([status, body.error.details[0]?.path]).toEqual([422, 'host']);
    },
  );

  it('404: the domain to remove is missing or is no host name', async () => {
    for (const host of ['nobody.test', '10.0.0.1', '%2a.test', 'a%00b']) {
      expect((await test.ask('DELETE', `/v1/apps/${app.id}/domains/${host}`, { as: user })).status).toBe(404);
    }
  });

  it('404: the app belongs to another tenant, and keeps its domains', async () => {
    const stranger = await test.signUp();
    expect((await add('foreign.test')).status).toBe(201);
    expect((await add('more.test', stranger)).status).toBe(404);
    expect((await test.ask('GET', `/v1/apps/${app.id}/domains`, { as: stranger })).status).toBe(404);
    expect((await test.ask('DELETE', `/v1/apps/${app.id}/domains/foreign.test`, { as: stranger })).status).toBe(404);
    expect(await hosts()).toContain('foreign.test');
  });
});
