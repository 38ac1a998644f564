import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { AppId } from '#shared/ids.ts';
import { openEventStream } from '#test/support/api/event-reader.ts';
import { seedRelease } from '#test/support/api/seeds.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
let app: { id: AppId; name: string };
beforeAll(async () => {
  test = await createTestApi();
  ada = await test.signUp();
});
afterAll(() => test?.close());
beforeEach(async () => {
  app = await test.createApp(ada);
});

describe('releases and deploys', () => {
  it('are listed newest first, with the current one marked', async () => {
    const first = await seedRelease(test, ada, app.id);
    const second = await seedRelease(test, ada, app.id);
    const { body } = await test.ask('GET', `/v1/apps/${app.name}/releases`, { as: ada });
    expect(body.data).toMatchObject([
      { id: second, version: 2, status: 'succeeded', kind: 'build', current: true, created_by: ada.email },
      { id: first, version: 1, current: false },
    ]);
    const deploys = await test.ask('GET', `/v1/apps/${app.name}/deploys`, { as: ada });
    expect(deploys.body.data).toMatchObject([
      { release_id: second, version: 2, status: 'live', weight: 100 },
      { release_id: first },
    ]);
    expect((await test.ask('GET', `/v1/apps/${app.name}`, { as: ada })).body.data.current_release).toEqual({
      id: second,
      version: 2,
    });
  });

  it.each(['id', 'version', 'v'])('are rolled back to by %s, which creates a new release and its deploy', async (by) => {
    const first = await seedRelease(test, ada, app.id);
    await seedRelease(test, ada, app.id);
    const rid = by === 'id' ? first : by === 'version' ? '1' : 'v1';
    const { status, body } = await test.ask('POST', `/v1/apps/${app.id}/deploys/${rid}/rollback`, { as: ada });
    expect([status, body.data.version, body.data.status]).toEqual([201, 3, 'pending']);
    const releases = await test.ask('GET', `/v1/apps/${app.id}/releases`, { as: ada });
    expect(releases.body.data[0]).toMatchObject({ id: body.data.release_id, kind: 'rollback', version: 3, current: false });
  });

  it('cannot be rolled back to a release of another app or one that does not exist', async () => {
    const foreign = await seedRelease(test, ada, (await test.createApp(ada)).id);
    for (const rid of [foreign, 'v9', '0', '99999999999', crypto.randomUUID(), 'x;y']) {
      const { status, body } = await test.ask('POST', `/v1/apps/${app.id}/deploys/${rid}/rollback`, { as: ada });
      expect([status, body.error.message]).toEqual([404, 'No such release.']);
    }
  });
});

describe('the variables of an app', () => {
  const change = (json: unknown) => test.ask('PATCH', `/v1/apps/${app.id}/config`, { as: ada, json });

  it('are set, changed and removed, and others stay as they are', async () => {
    expect((await change({ GREETING: 'hello', EMPTY: '', LINES: 'a\nb' })).body.data).toEqual({
      EMPTY: '',
      GREETING: 'hello',
      LINES: 'a\nb',
    });
    expect((await change({ GREETING: null, EMPTY: 'x' })).body.data).toEqual({ EMPTY: 'x', LINES: 'a\nb' });
    const { body, headers } = await test.ask('GET', `/v1/apps/${app.id}/config`, { as: ada });
    expect((await test.ask('GET', `/v1/apps/${app.id}/config?addons=true`, { as: ada })).body.data).toEqual(body.data);
    expect((await test.ask('GET', `/v1/apps/${app.id}/config?addons=yes`, { as: ada })).status).toBe(422);
    expect(body.data).toEqual({ EMPTY: 'x', LINES: 'a\nb' });
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it.each([
    [[]],
    [{ '1A': 'x' }],
    [{ 'A-B': 'x' }],
    [{ '': 'x' }],
    [{ A: 1 }],
    [{ A: { b: 'c' } }],
    [{ A: 'x\u0000y' }],
    ['text'],
    [null],
  ])('refuse %j', async (json) => {
    expect((await change(json)).status).toBe(422);
  });

  it('are not changed by a request without a body', async () => {
    expect((await test.ask('PATCH', `/v1/apps/${app.id}/config`, { as: ada })).status).toBe(415);
    const headers = { 'content-type': 'application/json' };
    expect((await test.ask('PATCH', `/v1/apps/${app.id}/config`, { as: ada, headers })).status).toBe(400);
  });

  it('may have a name with a meaning in JavaScript', async () => {
    const body = '{"__proto__": "x", "constructor": "y"}';
    const { status } = await test.ask('PATCH', `/v1/apps/${app.id}/config`, {
      as: ada,
      body,
      headers: { 'content-type': 'application/json' },
    });
    const read = await test.ask('GET', `/v1/apps/${app.id}/config`, { as: ada });
    expect(status).toBe(200);
    expect(read.body.data.constructor).toBe('y');
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });

  it('create a release when the app runs', async () => {
    await seedRelease(test, ada, app.id);
    await change({ GREETING: 'hello' });
    const { body } = await test.ask('GET', `/v1/apps/${app.id}/releases`, { as: ada });
    expect(body.data[0]).toMatchObject({ version: 2, kind: 'config', status: 'pending' });
  });

  it('appear in no error and no log', async () => {
    await change({ TOKEN: 'canary-77d0\u0000' });
    await change({ TOKEN: 'canary-77d0' });
    expect(JSON.stringify(test.logged)).not.toContain('canary-77d0');
  });
});

describe('processes', () => {
  it('are those of the current release, none before the first', async () => {
    expect((await test.ask('GET', `/v1/apps/${app.id}/processes`, { as: ada })).body).toEqual({ data: [], next_cursor: null });
    await seedRelease(test, ada, app.id, { web: 'node server.js' });
    const { body } = await test.ask('GET', `/v1/apps/${app.id}/processes`, { as: ada });
    expect(body.data).toEqual([{ type: 'web', command: 'node server.js', quantity: 1, instances: [] }]);
  });

  it('are scaled by type', async () => {
    await seedRelease(test, ada, app.id);
    const { status, body } = await test.ask('PATCH', `/v1/apps/${app.id}/processes/web`, { as: ada, json: { quantity: 2 } });
    expect([status, body.data.quantity]).toEqual([200, 2]);
  });

  it.each([-1, 1.5, '2', null, 1_000_000, 500])('are not scaled to %j', async (quantity) => {
    await seedRelease(test, ada, app.id);
    expect((await test.ask('PATCH', `/v1/apps/${app.id}/processes/web`, { as: ada, json: { quantity } })).status).toBe(422);
  });

  it('are restarted together, which is accepted with 202', async () => {
    expect((await test.ask('POST', `/v1/apps/${app.id}/restart`, { as: ada })).status).toBe(409);
    await seedRelease(test, ada, app.id);
    const { status, body } = await test.ask('POST', `/v1/apps/${app.id}/restart`, { as: ada });
    expect([status, body.data.processes]).toEqual([202, ['web']]);
  });
});

describe('the log of an app', () => {
  const write = (message: string, process = 'web.1', releaseVersion = 1): void =>
    test.logs.write(app.id, { process, releaseVersion, message });
  const messages = async (query: string): Promise<string[]> => {
    const { status, body } = await test.ask('GET', `/v1/apps/${app.id}/logs${query}`, { as: ada });
    expect(status).toBe(200);
    return body.data.map((entry: { message: string }) => entry.message);
  };

  it('returns the newest lines, oldest first, by process and release', async () => {
    write('one');
    write('two', 'worker.1');
    write('three', 'web.1', 2);
    expect(await messages('')).toEqual(['one', 'two', 'three']);
    expect(await messages('?lines=2')).toEqual(['two', 'three']);
    expect(await messages('?process=web')).toEqual(['one', 'three']);
    expect(await messages('?process=worker.1')).toEqual(['two']);
    expect(await messages('?release=v2')).toEqual(['three']);
    expect(await messages(`?since=${new Date(Date.now() + 60_000).toISOString()}`)).toEqual([]);
  });

  it.each(['lines=0', 'lines=10001', 'since=yesterday', 'process=../x', 'release=latest'])('refuses ?%s', async (query) => {
    expect((await test.ask('GET', `/v1/apps/${app.id}/logs?${query}`, { as: ada })).status).toBe(422);
  });

  it('is followed and resumed after the last entry, without a gap and without a repetition', async () => {
    for (const message of ['one', 'two', 'three']) write(message);
    const stream = await openEventStream(test, ada, `/v1/apps/${app.id}/logs`);
    expect((await stream.next()).data.message).toBe('one');
    const seen = await stream.next();
    expect(seen.data.message).toBe('two');
    await stream.close();
    write('four');
    const resumed = await openEventStream(test, ada, `/v1/apps/${app.id}/logs?lines=1`, { 'last-event-id': seen.id ?? '' });
    expect((await resumed.next()).data.message).toBe('three');
    expect((await resumed.next()).data.message).toBe('four');
    const next = resumed.next();
    write('five');
    expect((await next).data.message).toBe('five');
    await resumed.close();
  });
});
