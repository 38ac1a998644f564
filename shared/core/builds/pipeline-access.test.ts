import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { runBuildJob } from '#shared/core/builds/build-job.ts';
import type { BuildId } from '#shared/ids.ts';
import type { BuildAddress, BuildSpec } from '#shared/platform/builds.ts';
import { readTar } from '#shared/sources/tar-reader.ts';
import { tarOf } from '#shared/sources/testing/tar-builder.ts';
import { type CoreFixture, createCoreFixture, type FixtureApp } from '#test/support/core/core-fixture.ts';
import { startFileServer } from '#test/support/servers/file-server.ts';

const never = new AbortController().signal;

describe('the pipeline of a build', () => {
  let core: CoreFixture;
  let owner: Principal;
  let app: FixtureApp;
  let buildId: BuildId;
  beforeAll(async () => {
    core = await createCoreFixture();
    owner = await core.signUp();
  });
  afterAll(() => core.close());
  beforeEach(async () => {
    app = await core.createApp(owner);
    await app.commit({ 'bin/run': '#!/bin/sh\n' });
    await app.push('-o', 'detach', 'main');
    buildId = (await core.latestBuild(app.id)).id;
  });

  const openSource = (id: string, token: string) => core.services.pipelineAccess.openSource(id, token);
  const reportCompletion = (id: string, token: string) => core.services.pipelineAccess.reportCompletion(id, token);
  /** Runs the build; `work` is done while it runs, with what the platform got to build. */
  async function duringBuild(work: (spec: BuildSpec) => Promise<void>, id = buildId): Promise<void> {
    const done = Promise.withResolvers<void>();
    core.buildStep = async (spec) => {
      await work(spec).then(done.resolve, done.reject);
    };
    await Promise.all([runBuildJob(core.context, id, never), done.promise]);
  }
  async function readFiles(stream: ReadableStream<Uint8Array>): Promise<Record<string, string>> {
    const files: Record<string, string> = {};
    for await (const { path, content } of readTar(stream as unknown as AsyncIterable<Uint8Array>, { bytes: 1e6, entries: 100 }))
      files[path] = Buffer.concat(await Array.fromAsync(content)).toString();
    return files;
  }
  const unauthorized = { code: 'unauthorized' };

  it('gets the same tree as the stream, once, at an address of the build', async () => {
    await duringBuild(async ({ source }) => {
      const { url, token } = await source.createAddress();
      expect(url).toBe(`${core.context.settings.baseUrl}/v1/internal/builds/${buildId}/source`);
      const streamed: Record<string, string> = {};
      for await (const { path, content } of source.open()) streamed[path] = Buffer.from(content as Uint8Array).toString();
      expect(await readFiles(await openSource(buildId, token))).toEqual(streamed);
      expect(Object.keys(streamed).sort()).toEqual(['Procfile', 'bin/run']);
      await expect(openSource(buildId, token)).rejects.toMatchObject(unauthorized);
    });
  });

  it('gets the archive that the build started with, and never one that replaced it', async () => {
    const server = await startFileServer();
    try {
      const pack = (content: string) => gzipSync(tarOf({ path: 'Procfile', content }));
      server.files.set('/a.tar.gz', pack('web: first\n'));
      const { id } = await core.services.builds.startBuild(owner, app.id, { sourceUrl: `${server.url}/a.tar.gz` });
      await duringBuild(async ({ source }) => {
        const [one, other] = [await source.createAddress(), await source.createAddress()];
        expect(await readFiles(await openSource(id, one.token))).toEqual({ Procfile: 'web: first\n' });
        server.files.set('/a.tar.gz', pack('web: second\n'));
        await expect(openSource(id, other.token)).rejects.toMatchObject({ code: 'validation_failed' });
      }, id);
    } finally {
      await server.close();
    }
  });

  it('is refused with a wrong token, one of another build or purpose, an expired one, and once the build is over', async () => {
    let address: BuildAddress | undefined;
    await duringBuild(async (spec) => {
      address = await spec.source.createAddress();
      const { token } = await spec.createCallback();
      const expired = await spec.source.createAddress();
      for (const [id, wrong] of [
        [buildId, 'paasb_x'],
        [buildId, token],
        [crypto.randomUUID(), address.token],
        ['no-uuid', address.token],
      ] as const)
        await expect(openSource(id, wrong)).rejects.toMatchObject(unauthorized);
      await expect(reportCompletion(buildId, address.token)).rejects.toMatchObject(unauthorized);
      await core.context.db
        .updateTable('build_tokens')
        .set({ expires_at: new Date(0) })
        .where('build_id', '=', buildId)
        .execute();
      await expect(openSource(buildId, expired.token)).rejects.toMatchObject(unauthorized);
      address = await spec.source.createAddress();
    });
    await expect(openSource(buildId, address?.token ?? '')).rejects.toMatchObject(unauthorized);
    expect(await core.context.db.selectFrom('build_tokens').select('purpose').where('build_id', '=', buildId).execute()).toEqual(
      [],
    );
  });

  it('stores no token, only a hash', async () => {
    await duringBuild(async (spec) => {
      const { token } = await spec.createCallback();
      const rows = await core.context.db.selectFrom('build_tokens').selectAll().where('build_id', '=', buildId).execute();
      expect(rows).toHaveLength(1);
      expect(JSON.stringify(rows)).not.toContain(token);
    });
  });

  it('reports its end any number of times; each time the platform is asked, here and where the build is watched', async () => {
    const checked: string[] = [];
    const { checkBuild } = core.platform.builds;
    core.platform.builds.checkBuild = async (id) => void checked.push(id);
    try {
      await duringBuild(async (spec) => {
        const { url, token } = await spec.createCallback();
        expect(url).toBe(`${core.context.settings.baseUrl}/v1/internal/builds/${buildId}/complete`);
        await reportCompletion(buildId, token);
        await expect.poll(() => checked).toEqual([buildId, buildId]);
        await reportCompletion(buildId, token);
        await expect.poll(() => checked).toHaveLength(4);
        expect((await core.services.builds.readBuild(owner, app.id, buildId)).status).toBe('running');
      });
    } finally {
      core.platform.builds.checkBuild = checkBuild;
    }
  });
});
