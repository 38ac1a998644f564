import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { runBuildJob } from '#shared/core/builds/build-job.ts';
import { type CoreFixture, createCoreFixture, type FixtureApp } from '#test/support/core/core-fixture.ts';

const never = new AbortController().signal;

describe('an app of a folder of its source', () => {
  let core: CoreFixture;
  let owner: Principal;
  let app: FixtureApp;
  beforeAll(async () => {
    core = await createCoreFixture();
    owner = await core.signUp();
  });
  afterAll(() => core.close());
  beforeEach(async () => {
    app = await core.createApp(owner);
    await app.commit({
      'services/api/Procfile': 'web: ./api',
      'services/api/main': '',
      'services/apiary/Procfile': 'web: ./bees',
    });
  });

  async function build(directory: string) {
    await core.services.settings.changeSettings(owner, app.id, { directory });
    await app.push('-o', 'detach', 'main');
    await runBuildJob(core.context, (await core.latestBuild(app.id)).id, never);
    const lines = await core.services.builds.readBuildLog(owner, app.id, 'latest', {});
    return { ...(await core.latestBuild(app.id)), lines: lines.map(({ line }) => line) };
  }

  it('is built of that folder alone, and the log says so', async () => {
    const { processes, lines } = await build('services/api');
    expect(processes).toEqual({ web: './api' });
    expect(lines).toContain('-----> Building the folder services/api');
  });

  it('takes the folder however it is written, and all of the source by "."', async () => {
    expect((await build('./services/api/')).processes).toEqual({ web: './api' });
    await app.commit({ more: '' });
    const { processes, lines } = await build('.');
    expect(processes).not.toEqual({ web: './api' });
    expect(lines.join('\n')).not.toContain('Building the folder');
  });

  it('fails by a folder that the source does not have, and names those that there are', async () => {
    const { status, error } = await build('services/web');
    expect([status, error]).toEqual([
      'failed',
      'The source has no folder services/web, of which this app is built. Its folders are: services. To choose: paas settings:set directory=PATH',
    ]);
  });

  it.each(['/etc', '..', 'a/../b', 'a//b', '.git', 'a\\b', 'a\u0000', 'a'.repeat(201)])('cannot be of %j', async (directory) => {
    await expect(core.services.settings.changeSettings(owner, app.id, { directory })).rejects.toMatchObject({
      code: 'validation_failed',
      details: [{ path: 'directory' }],
    });
  });
});
