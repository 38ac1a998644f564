import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { millisecondsPerDay } from '#shared/durations.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
beforeAll(async () => {
  test = await createTestApi();
  ada = await test.signUp();
});
afterAll(() => test?.close());

const newName = (): string => `app-${crypto.randomUUID().slice(0, 8)}`;

describe('an app', () => {
  it('is created with a name, its own repository and its subdomain', async () => {
    const name = newName();
    const { status, body } = await test.ask('POST', '/v1/apps', { as: ada, json: { name } });
    expect(status).toBe(201);
    expect(body.data).toMatchObject({
      name,
      tenant_id: ada.tenantId,
      git_url: `ssh://git@localhost:2222/${name}.git`,
      push_url: `ssh://git@localhost:2222/${name}.git`,
      branch: 'main',
      subdomain: `https://${name}.apps.localhost:8443`,
      status: 'active',
      current_release: null,
      preview: null,
      deleted_at: null,
      restorable_until: null,
    });
  });

  it('gets a generated name when the request has none, also without a body', async () => {
    const answers = await Promise.all([
      test.ask('POST', '/v1/apps', { as: ada }),
      test.ask('POST', '/v1/apps', { as: ada, json: {} }),
    ]);
    expect(answers.map((answer) => answer.status)).toEqual([201, 201]);
    expect(answers[0]?.body.data.name).not.toBe(answers[1]?.body.data.name);
  });

  it.each(['Upper', '1st', 'a_b', '-a', 'a-', 'a--b', 'www', 'x'.repeat(41), 'a.b', '$(id)', 'ünï'])(
    'cannot be named %j',
    async (name) => {
      const { status, body } = await test.ask('POST', '/v1/apps', { as: ada, json: { name } });
      expect([status, body.error.details[0]?.path]).toEqual([422, 'name']);
    },
  );

  it('has a name that is unique on the platform', async () => {
    const app = await test.createApp(await test.signUp());
    const { status, body } = await test.ask('POST', '/v1/apps', { as: ada, json: { name: app.name } });
    expect([status, body.error.code]).toEqual([409, 'conflict']);
  });

  it('is found by id and by name', async () => {
    const app = await test.createApp(ada);
    const [byId, byName] = await Promise.all([
      test.ask('GET', `/v1/apps/${app.id}`, { as: ada }),
      test.ask('GET', `/v1/apps/${app.name}`, { as: ada }),
    ]);
    expect(byId.body.data.id).toBe(app.id);
    expect(byName.body).toEqual(byId.body);
  });

  it('stores a git source and a branch exactly as given, and removes the source', async () => {
    const app = await test.createApp(ada);
    const source = { url: 'https://git.example.com/ada/hello.git', branch: 'trunk' };
    const set = await test.ask('PUT', `/api/v1/apps/${app.id}/git`, { as: ada, json: source });
    expect([set.status, set.body.data.git_url, set.body.data.branch]).toEqual([200, source.url, 'trunk']);
    const unset = await test.ask('PUT', `/v1/apps/${app.id}/git`, { as: ada, json: { url: null } });
    expect([unset.body.data.git_url, unset.body.data.branch]).toEqual([null, 'trunk']);
    expect((await test.ask('PUT', `/v1/apps/${app.id}/git`, { as: ada, json: {} })).status).toBe(422);
  });

  it('can be restored for 30 days after its deletion', async () => {
    const app = await test.createApp(ada);
    const deleted = await test.ask('DELETE', `/v1/apps/${app.name}`, { as: ada });
    expect([deleted.status, deleted.body.data.status]).toEqual([200, 'deleted']);
    expect(Date.parse(deleted.body.data.restorable_until ?? '') - Date.parse(deleted.body.data.deleted_at ?? '')).toBe(
      30 * millisecondsPerDay,
    );
    expect((await test.ask('DELETE', `/v1/apps/${app.name}`, { as: ada })).status).toBe(404);
    expect((await test.ask('GET', `/v1/apps/${app.id}/builds`, { as: ada })).status).toBe(404);
    const listed = await test.ask('GET', '/v1/apps?deleted=true', { as: ada });
    expect(listed.body.data.map((each: { id: string }) => each.id)).toContain(app.id);
    const restored = await test.ask('POST', `/v1/apps/${app.id}/restore`, { as: ada });
    expect([restored.status, restored.body.data.status, restored.body.data.restorable_until]).toEqual([200, 'active', null]);
    expect((await test.ask('POST', `/v1/apps/${app.id}/restore`, { as: ada })).status).toBe(409);
  });
});

describe('the list of apps', () => {
  it('is read page by page, newest first, and does not shift when apps are created', async () => {
    const bob = await test.signUp();
    const names: string[] = [];
    for (let index = 0; index < 7; index += 1) names.unshift((await test.createApp(bob)).name);
    const seen: string[] = [];
    let path = '/v1/apps?limit=3';
    for (;;) {
      const { status, body } = await test.ask('GET', path, { as: bob });
      expect(status).toBe(200);
      seen.push(...body.data.map((app: { name: string }) => app.name));
      if (body.next_cursor === null) break;
      await test.createApp(bob);
      path = `/v1/apps?limit=3&cursor=${encodeURIComponent(body.next_cursor)}`;
    }
    expect(seen).toEqual(names);
  });

  it.each([
    'limit=0',
    'limit=201',
    'limit=x',
    'limit=1.5',
    'limit=',
    'limit=1&limit=2',
    'cursor=',
    'cursor=bm90IG91cnM',
    'cursor=%00',
    'deleted=maybe',
  ])('refuses ?%s', async (query) => {
    const { status, body } = await test.ask('GET', `/v1/apps?${query}`, { as: ada });
    expect([status, body.error.code]).toEqual([422, 'validation_failed']);
    expect(body.error.details[0]?.path).toBe(query.split('=')[0]);
  });
});
