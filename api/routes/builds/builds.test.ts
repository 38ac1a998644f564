import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openEventStream } from '#test/support/api/event-reader.ts';
import { seedBuild, seedBuildLog } from '#test/support/api/seeds.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
let app: { id: string; name: string };
beforeAll(async () => {
  test = await createTestApi();
  ada = await test.signUp();
});
afterAll(() => test?.close());

describe('a build', () => {
  it('cannot start before the first push, and the answer says what to push', async () => {
    app = await test.createApp(ada);
    const { status, body } = await test.ask('POST', `/v1/apps/${app.id}/builds`, { as: ada });
    expect([status, body.error.code]).toEqual([409, 'conflict']);
    expect(body.error.message).toContain('git push paas main');
  });

  it.each([
    { commit: 'HEAD' },
    { commit: '--upload-pack=x' },
    { commit: 'abc123' },
    { branch: '' },
    { branch: 7 },
    { branch: 'a\u0000b' },
    { source_url: '' },
    { source_url: 'https://files.example.com/a.tar.gz', branch: 'main' },
    { source_url: 'https://files.example.com/a.tar.gz', source_sha256: 'abc' },
    { source_sha256: 'a'.repeat(64) },
  ])('is not started by %j', async (json) => {
    app = await test.createApp(ada);
    expect((await test.ask('POST', `/v1/apps/${app.id}/builds`, { as: ada, json })).status).toBe(422);
  });

  it('is read by its id and as `latest`, with its cache state', async () => {
    app = await test.createApp(ada);
    const build = await seedBuild(test, ada, app.id);
    const byId = await test.ask('GET', `/v1/apps/${app.name}/builds/${build.id}`, { as: ada });
    expect(byId.body.data).toMatchObject({
      id: build.id,
      app_id: app.id,
      status: 'queued',
      cache_state: 'Cold',
      pipeline: 'memory',
      branch: 'main',
      error: null,
    });
    expect((await test.ask('GET', `/v1/apps/${app.name}/builds/latest`, { as: ada })).body).toEqual(byId.body);
    const second = await seedBuild(test, ada, app.id);
    const list = await test.ask('GET', `/v1/apps/${app.name}/builds`, { as: ada });
    expect(list.body.data.map((each: { id: string }) => each.id)).toEqual([second.id, build.id]);
    expect(list.body.data[0]?.cache_state).toBe('Warm');
  });

  it('of an archive starts once per Idempotency-Key, and never shows the query of its URL', async () => {
    app = await test.createApp(ada);
    const json = { source_url: 'https://files.example.com/a.tar.gz?signature=secret', source_sha256: 'a'.repeat(64) };
    const start = () =>
      test.ask('POST', `/v1/apps/${app.id}/builds`, { as: ada, json, headers: { 'idempotency-key': 'archive' } });
    const started = await start();
    expect([started.status, started.body.data]).toMatchObject([
      201,
      { commit: null, branch: null, source_url: 'https://files.example.com/a.tar.gz', source_sha256: 'a'.repeat(64) },
    ]);
    expect((await start()).body).toEqual(started.body);
    const list = await test.ask('GET', `/v1/apps/${app.id}/builds`, { as: ada });
    expect(list.body.data).toEqual([started.body.data]);
    expect(JSON.stringify(list.body)).not.toContain('secret');
  });

  it('is canceled while it is queued, once', async () => {
    app = await test.createApp(ada);
    const build = await seedBuild(test, ada, app.id);
    const canceled = await test.ask('POST', `/v1/apps/${app.id}/builds/${build.id}/cancel`, { as: ada });
    expect([canceled.status, canceled.body.data.status]).toEqual([200, 'canceled']);
    expect((await test.ask('POST', `/v1/apps/${app.id}/builds/${build.id}/cancel`, { as: ada })).status).toBe(409);
  });
});

describe('the log of a build', () => {
  const logPath = (id: string): string => `/v1/apps/${app.id}/builds/${id}/logs`;

  it('is read from its first line, page by page', async () => {
    app = await test.createApp(ada);
    const build = await seedBuild(test, ada, app.id);
    await seedBuildLog(test, build, ['-----> one', '       two', '       three']);
    const first = await test.ask('GET', `${logPath(build.id)}?limit=2`, { as: ada });
    expect(first.body.data).toEqual([
      { seq: 1, ts: expect.any(String), line: '-----> one' },
      { seq: 2, ts: expect.any(String), line: '       two' },
    ]);
    const rest = await test.ask('GET', `${logPath(build.id)}?limit=2&cursor=${first.body.next_cursor}`, { as: ada });
    expect(rest.body.data.map((each: { seq: number }) => each.seq)).toEqual([3]);
    expect(rest.body.next_cursor).toBeNull();
  });

  it('is followed as it is written, and ends with the build', async () => {
    app = await test.createApp(ada);
    const build = await seedBuild(test, ada, app.id);
    await seedBuildLog(test, build, ['one', 'two']);
    const stream = await openEventStream(test, ada, logPath(build.id));
    expect((await stream.next()).data).toMatchObject({ seq: 1, line: 'one' });
    expect((await stream.next()).id).toBe('2');
    await seedBuildLog(test, build, ['three']);
    expect((await stream.next()).data).toMatchObject({ seq: 3, line: 'three' });
    await test.ask('POST', `/v1/apps/${app.id}/builds/${build.id}/cancel`, { as: ada });
    expect(await stream.next()).toMatchObject({ event: 'end', data: { id: build.id, status: 'canceled' } });
    await expect(stream.next()).rejects.toThrow('ended');
  });

  it('resumes after the last line that was received', async () => {
    app = await test.createApp(ada);
    const build = await seedBuild(test, ada, app.id);
    await seedBuildLog(test, build, ['one', 'two', 'three']);
    const stream = await openEventStream(test, ada, logPath(build.id), { 'last-event-id': '2' });
    expect((await stream.next()).data).toMatchObject({ seq: 3, line: 'three' });
    await stream.close();
  });

  it('is not found by a user of another tenant who tries to follow it', async () => {
    const build = await seedBuild(test, ada, app.id);
    const foreign = await test.ask('GET', logPath(build.id), {
      as: await test.signUp(),
      headers: { accept: 'text/event-stream' },
    });
    expect([foreign.status, foreign.body.error.code]).toEqual([404, 'not_found']);
  });
});

describe('the build cache', () => {
  it('has exactly the specified fields, under both prefixes', async () => {
    app = await test.createApp(ada);
    for (const prefix of ['/v1', '/api/v1']) {
      const { body } = await test.ask('GET', `${prefix}/apps/${app.id}/build_cache`, { as: ada });
      expect(body).toEqual({ data: { app_id: app.id, pvc_name: `build-cache-${app.id}`, namespace: 'paas-build' } });
    }
  });

  it('is flushed when it exists, and its absence is no error', async () => {
    app = await test.createApp(ada);
    await seedBuild(test, ada, app.id);
    const path = `/apps/${app.id}/build_cache/flush`;
    const first = await test.ask('DELETE', `/api/v1${path}`, { as: ada });
    expect([first.status, first.body]).toEqual([200, { data: { app_id: app.id, flushed: true, message: expect.any(String) } }]);
    const second = await test.ask('DELETE', `/v1${path}`, { as: ada });
    expect([second.status, second.body]).toEqual([
      200,
      { data: { app_id: app.id, flushed: false, message: expect.any(String) } },
    ]);
    await seedBuild(test, ada, app.id);
    expect((await test.ask('GET', `/v1/apps/${app.id}/builds/latest`, { as: ada })).body.data.cache_state).toBe('Cold');
  });
});
