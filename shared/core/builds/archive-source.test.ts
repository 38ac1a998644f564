import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { runBuildJob } from '#shared/core/builds/build-job.ts';
import type { BuildId } from '#shared/ids.ts';
import { tarOf } from '#shared/sources/testing/tar-builder.ts';
import { type CoreFixture, createCoreFixture, type FixtureApp } from '#test/support/core/core-fixture.ts';
import { type FileServer, startFileServer } from '#test/support/servers/file-server.ts';

const never = new AbortController().signal;
const packed = gzipSync(tarOf({ path: 'hello-1.2/Procfile', content: 'web: serve\n' }, { path: 'hello-1.2/a', content: '1' }));
const sha256 = createHash('sha256').update(packed).digest('hex');

describe('a build of an archive', () => {
  let core: CoreFixture;
  let server: FileServer;
  let owner: Principal;
  let app: FixtureApp;
  beforeAll(async () => {
    core = await createCoreFixture();
    server = await startFileServer();
    server.files.set('/hello-1.2.tar.gz', packed);
    owner = await core.signUp();
  });
  afterAll(async () => {
    await server.close();
    await core.close();
  });
  beforeEach(async () => {
    core.buildStep = async () => undefined;
    app = await core.createApp(owner);
  });

  const start = (request: { path?: string; sha256?: string } = {}) =>
    core.services.builds.startBuild(owner, app.id, {
      sourceUrl: `${server.url}${request.path ?? '/hello-1.2.tar.gz'}?signature=secret#part`,
      ...(request.sha256 === undefined ? {} : { sourceSha256: request.sha256 }),
    });
  const run = (id: string): Promise<void> => runBuildJob(core.context, id as BuildId, never);
  const read = (id: string) => core.services.builds.readBuild(owner, app.id, id);
  const readLog = async (id: string) =>
    (await core.services.builds.readBuildLog(owner, app.id, id, {})).map(({ line }) => line).join('\n');

  it('is of its files, and is released and recorded as that of an archive', async () => {
    const seen = Promise.withResolvers<{ commit: string | undefined; files: ReadonlyMap<string, string> }>();
    core.buildStep = async ({ commit }, files) => seen.resolve({ commit, files });
    const { id, ...started } = await start({ sha256: sha256.toUpperCase() });
    expect(started).toMatchObject({
      commit: null,
      branch: null,
      sourceUrl: `${server.url}/hello-1.2.tar.gz`,
      sourceSha256: sha256,
    });
    await run(id);
    expect(await seen.promise).toEqual({
      commit: undefined,
      files: new Map([
        ['Procfile', 'web: serve\n'],
        ['a', '1'],
      ]),
    });
    expect(server.requests.at(-1)).toBe('/hello-1.2.tar.gz?signature=secret');
    const build = await read(id);
    expect(build).toMatchObject({
      status: 'succeeded',
      commit: null,
      sourceUrl: `${server.url}/hello-1.2.tar.gz`,
      sourceSha256: sha256,
    });
    const [release] = (await core.services.releases.listReleases(owner, app.id, { limit: 5 })).items;
    expect(release).toMatchObject({ id: build.releaseId, commit: null, kind: 'build', description: 'Deploy hello-1.2.tar.gz' });
  });

  it('says what it fetched, and nowhere the query of its address', async () => {
    const { id } = await start();
    await run(id);
    const log = await readLog(id);
    expect(log).toContain(
      `-----> Fetching ${server.url}/hello-1.2.tar.gz\n       0.0 MiB, 2 files, sha256:${sha256.slice(0, 12)}`,
    );
    expect((await read(id)).sourceSha256).toBe(sha256);
    const row = await core.context.db
      .selectFrom('builds')
      .selectAll()
      .where('id', '=', id as BuildId)
      .executeTakeFirst();
    for (const place of [log, JSON.stringify(row), core.logged.join()]) expect(place).not.toContain('secret');
  });

  it('that is not what was meant fails, and says why', async () => {
    const { id } = await start({ sha256: 'a'.repeat(64) });
    await run(id);
    expect(await read(id)).toMatchObject({ status: 'failed', error: expect.stringContaining(`its SHA-256 is ${sha256}`) });
    const missing = await start({ path: '/none.tar.gz' });
    await run(missing.id);
    expect((await read(missing.id)).error).toContain('answered 404 for /none.tar.gz');
    expect(await readLog(missing.id)).not.toContain('secret');
  });

  it('fetches it anew when it has to start over, also when it is another one by then', async () => {
    const { id } = await start();
    const stopping = new AbortController();
    core.buildStep = async () => stopping.abort(new Error('stopping'));
    await expect(runBuildJob(core.context, id as BuildId, stopping.signal)).rejects.toThrow('stopping');
    await core.platform.builds.loseBuild(id as BuildId);
    const another = gzipSync(tarOf({ path: 'Procfile', content: 'web: other\n' }));
    server.files.set('/hello-1.2.tar.gz', another);
    core.buildStep = async () => undefined;
    await run(id);
    server.files.set('/hello-1.2.tar.gz', packed);
    const anotherSha256 = createHash('sha256').update(another).digest('hex');
    expect(await read(id)).toMatchObject({ status: 'succeeded', sourceSha256: anotherSha256 });
  });

  it('ends while it is being fetched when it is canceled', async () => {
    const release = server.hold();
    const { id } = await start();
    const asked = server.requests.length;
    const running = run(id);
    await expect.poll(() => server.requests.length).toBe(asked + 1);
    await core.services.builds.cancelBuild(owner, app.id, id);
    await running;
    release();
    expect(await read(id)).toMatchObject({ status: 'canceled' });
  });

  it('moves no ref, and what was pushed is built as before it', async () => {
    await run((await start()).id);
    await app.commit();
    await app.push('-o', 'detach', 'main');
    const pushed = await core.latestBuild(app.id);
    await run(pushed.id);
    expect(await read(pushed.id)).toMatchObject({ status: 'succeeded', sourceUrl: null, sourceSha256: null });
    const [newest, before] = (await core.services.releases.listReleases(owner, app.id, { limit: 5 })).items;
    expect(newest?.description).toBe(`Deploy ${pushed.commit?.slice(0, 8)}`);
    const { release } = await core.services.releases.rollBack(owner, app.id, `v${before?.version}`);
    expect(release).toMatchObject({ kind: 'rollback', commit: null, description: `Rollback to v${before?.version}` });
  });

  it.each([
    [{ sourceUrl: 'https://files.example.com/a.tar.gz', branch: 'main' }, ['branch']],
    [{ sourceUrl: 'https://files.example.com/a.tar.gz', branch: 'main', commit: 'a'.repeat(40) }, ['branch', 'commit']],
    [{ sourceSha256: 'a'.repeat(64) }, ['source_sha256']],
    [{ sourceUrl: 'https://files.example.com/a.tar.gz', sourceSha256: 'abc' }, ['source_sha256']],
    [{ sourceUrl: 'https://ada:secret@files.example.com/a.tar.gz' }, ['source_url']],
    [{ sourceUrl: 'file:///etc/passwd' }, ['source_url']],
    [{ sourceUrl: 'ftp://files.example.com/a.tar.gz' }, ['source_url']],
    [{ sourceUrl: 'a.tar.gz' }, ['source_url']],
  ])('is not started of %j', async (request, paths) => {
    const refused = core.services.builds.startBuild(owner, app.id, request);
    await expect(refused).rejects.toMatchObject({
      code: 'validation_failed',
      details: paths.map((path) => ({ path, message: expect.any(String) })),
    });
    await expect(refused).rejects.not.toThrow('secret');
  });
});
