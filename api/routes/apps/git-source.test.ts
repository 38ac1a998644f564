import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '#shared/errors.ts';
import type { TipsRequest } from '#shared/sources/source-hosts.ts';
import { createGitHost, type GitHostFixture, push } from '#test/support/api/git-host.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
beforeAll(async () => {
  test = await createTestApi();
  ada = await test.signUp();
});
afterAll(() => test?.close());

const read = async (app: string) => (await test.ask('GET', `/v1/apps/${app}/git`, { as: ada })).body.data;

describe('a token of a git host', () => {
  const url = 'https://git.example.com/ada/private.git';
  const asked: TipsRequest[] = [];
  beforeAll(() => {
    test.context.sources.listTips = async (request) => {
      asked.push(request);
      if (request.token?.value === 'wrong') throw new AppError('validation_failed', 'git.example.com answered 401.');
      return { branches: new Map(), defaultBranch: 'trunk' };
    };
  });
  const set = (app: string, json: object) => test.ask('PUT', `/v1/apps/${app}/git`, { as: ada, json });

  it('reads the repository, is sealed in the database and never shown', async () => {
    const { id } = await test.createApp(ada);
    const { status, body } = await set(id, { url, token: 'secret-of-ada' });
    expect([status, body.data.branch]).toEqual([200, 'trunk']);
    expect(asked.at(-1)?.token).toEqual({ user: 'x-token-auth', value: 'secret-of-ada' });
    expect(await read(id)).toMatchObject({ url, has_token: true });
    expect(JSON.stringify([body, await read(id), test.logged])).not.toContain('secret-of-ada');
    const rows = await test.context.db.selectFrom('source_tokens').selectAll().where('app_id', '=', id).execute();
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(rows)).not.toContain('secret-of-ada');
  });

  it('may come with the name of a user', async () => {
    const { id } = await test.createApp(ada);
    await set(id, { url, token: 'ada:t0ken' });
    expect(asked.at(-1)?.token).toEqual({ user: 'ada', value: 't0ken' });
  });

  it('stays while the source is on the same host, and is forgotten with it or on demand', async () => {
    const { id } = await test.createApp(ada);
    await set(id, { url, token: 'one' });
    await set(id, { url: 'https://git.example.com/ada/renamed.git' });
    expect([asked.at(-1)?.token?.value, (await read(id)).has_token]).toEqual(['one', true]);
    await set(id, { url: 'https://other.example.com/ada/private.git' });
    expect([asked.at(-1)?.token, (await read(id)).has_token]).toEqual([undefined, false]);
    await set(id, { url });
    expect((await read(id)).has_token).toBe(false);
    await set(id, { url, token: 'two' });
    await set(id, { url, token: null });
    expect([asked.at(-1)?.token, (await read(id)).has_token]).toEqual([undefined, false]);
    await set(id, { url, token: 'three' });
    await set(id, { url: null });
    await set(id, { url });
    expect((await read(id)).has_token).toBe(false);
  });

  it.each([
    ['that the host refuses', { url, token: 'wrong' }, 'answered 401'],
    ['that is no token', { url, token: 'a token with blanks' }, 'must be a token'],
    ['for an SSH address', { url: 'git@git.example.com:ada/private.git', token: 'one' }, 'for https addresses'],
    ['without a source', { url: null, token: 'one' }, 'no url'],
  ])('%s is refused, and nothing is changed', async (_what, json, message) => {
    const { id } = await test.createApp(ada);
    await set(id, { url: 'https://git.example.com/ada/before.git', token: 'before' });
    const { status, body } = await set(id, json);
    expect([status, body.error.code, body.error.message]).toEqual([422, 'validation_failed', expect.stringContaining(message)]);
    expect(await read(id)).toMatchObject({ url: 'https://git.example.com/ada/before.git', has_token: true });
  });
});

describe('the deliveries of an app', () => {
  let host: GitHostFixture;
  beforeAll(() => {
    host = createGitHost(test);
  });
  const list = async (app: string) => (await test.ask('GET', `/v1/apps/${app}/git/deliveries`, { as: ada })).body.data;
  const named = (id: string) => ({ 'x-github-delivery': id });

  it('are listed with what was answered, the newest first', async () => {
    const app = await host.createFollower(ada, 'https://git.example.com/ada/listed');
    const { webhook } = await read(app.id);
    expect(webhook).toMatchObject({ content_type: 'application/json', events: ['push', 'delete', 'pull_request'] });
    const own = (payload: unknown, headers: Record<string, string>) =>
      host.deliver(payload, headers, webhook?.secret, `?app=${app.id}`);
    await host.deliver(host.pushTo('ada/listed', 'main'), named('by-operator'));
    await own({ zen: 'Keep it simple' }, { 'x-github-event': 'ping', ...named('ping') });
    await own(host.pushTo('ada/listed', 'main'), named('push'));
    await own(push('ada/listed'), named('push'));
    await own(push('ada/renamed'), named('renamed'));
    await host.deliver(push('ada/listed'), named('forged'), 'not the secret', `?app=${app.id}`);
    const deliveries = await list(app.id);
    expect(deliveries.map(({ delivery_id, event, outcome }) => [delivery_id, event, outcome])).toEqual([
      ['renamed', 'push', 'refused'],
      ['push', 'push', 'replayed'],
      ['push', 'push', 'started'],
      ['ping', 'ping', 'ignored'],
      ['by-operator', 'push', 'started'],
    ]);
    expect(deliveries[0]).toMatchObject({
      provider: 'github',
      message: expect.stringMatching(/follows .*ada\/listed, and the delivery is of .*ada\/renamed.* `paas git:source:set`/),
    });
  });

  it('are the last twenty, and none of another app', async () => {
    const app = await host.createFollower(ada, 'https://git.example.com/ada/many');
    const other = await host.createFollower(ada, 'https://git.example.com/ada/none');
    for (let count = 0; count < 25; count += 1) await host.deliver(host.pushTo('ada/many', 'main'), named(`n${count}`));
    const ids = (await list(app.id)).map(({ delivery_id }) => delivery_id);
    expect(ids).toEqual(Array.from({ length: 20 }, (_, index) => `n${24 - index}`));
    expect(await list(other.id)).toEqual([]);
  });
});
