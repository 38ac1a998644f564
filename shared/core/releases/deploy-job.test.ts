import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { runBuildJob } from '#shared/core/builds/build-job.ts';
import { runDeployJob } from '#shared/core/releases/deploy-job.ts';
import type { DeployId } from '#shared/ids.ts';
import { type CoreFixture, createCoreFixture, type FixtureApp } from '#test/support/core/core-fixture.ts';

const never = new AbortController().signal;

describe('a deploy job', () => {
  let core: CoreFixture;
  let owner: Principal;
  let app: FixtureApp;
  beforeAll(async () => {
    core = await createCoreFixture();
    // Who signs up first is the operator, whose team has no quotas.
    await core.signUp();
    owner = await core.signUp();
  });
  afterAll(() => core.close());
  beforeEach(async () => {
    core.script = {};
    app = await core.createApp(owner);
    await release();
  });

  /** Builds a new release. No worker runs its deploy. */
  async function release(files: Record<string, string> = {}): Promise<void> {
    await app.commit(files);
    await app.push('-o', 'detach', 'main');
    await runBuildJob(core.context, (await core.latestBuild(app.id)).id, never);
  }
  const listDeploys = async () => (await core.services.releases.listDeploys(owner, app.id, { limit: 50 })).items;
  const listReleases = async () => (await core.services.releases.listReleases(owner, app.id, { limit: 50 })).items;
  const currentVersion = async () => (await core.services.apps.readApp(owner, app.id)).currentRelease?.version;
  /** Of the newest release. */
  async function deploy(version?: number, signal = never): Promise<void> {
    const deploys = await listDeploys();
    const found = version === undefined ? deploys[0] : deploys.find((candidate) => candidate.version === version);
    await runDeployJob(core.context, found?.id as DeployId, signal);
  }
  const refuseToBoot = (): void => {
    core.script = { boot: () => ({ exitCode: 3, output: ['no such module'] }) };
  };

  it('brings its release live, once', async () => {
    await deploy();
    await deploy();
    expect(await currentVersion()).toBe(1);
    expect(await listDeploys()).toMatchObject([{ status: 'live', weight: 100, error: null }]);
  });

  it('lists only the deploy of the release that serves as live', async () => {
    await deploy();
    await release({ more: '' });
    await deploy();
    expect(await listDeploys()).toMatchObject([
      { version: 2, status: 'live', weight: 100 },
      { version: 1, status: 'superseded', weight: 0, error: null },
    ]);
  });

  it('leaves the previous release current when the new one does not start, and reports why', async () => {
    await deploy();
    await release({ more: '' });
    refuseToBoot();
    await deploy();
    expect(await currentVersion()).toBe(1);
    const [newest] = await listDeploys();
    expect(newest).toMatchObject({ status: 'aborted', weight: 0, version: 2 });
    expect(newest?.error).toContain('exited with code 3');
    const log = await core.services.builds.readBuildLog(owner, app.id, 'latest', {});
    expect(log.map(({ line }) => line).join('\n')).toContain('no such module');
  });

  it('rolls nothing out when the release command fails', async () => {
    await release({ Procfile: 'web: serve\nrelease: migrate\n' });
    core.script = { run: async () => 7 };
    await deploy();
    expect(await currentVersion()).toBeUndefined();
    expect(await listDeploys()).toMatchObject([{ status: 'failed', version: 2 }, { status: 'pending' }]);
  });

  it('ends a release command that takes longer than the settings allow, and rolls nothing out', async () => {
    await release({ Procfile: 'web: serve\nrelease: migrate\n' });
    let ended = false;
    core.script = {
      run: (_command, _line, signal) =>
        new Promise((_resolve, reject) => {
          const end = (): void => {
            ended = true;
            reject(signal.reason as Error);
          };
          signal.addEventListener('abort', end, { once: true });
        }),
    };
    const newest = (await listDeploys())[0]?.id as DeployId;
    const settings = { ...core.context.settings, releaseCommandSeconds: 1 };
    await runDeployJob({ ...core.context, settings }, newest, never);
    expect(ended).toBe(true);
    expect(await currentVersion()).toBeUndefined();
    expect((await listDeploys())[0]).toMatchObject({
      status: 'failed',
      error: 'The release command took longer than 1 second and was stopped, so v2 was not rolled out.',
    });
    const log = await core.services.builds.readBuildLog(owner, app.id, 'latest', {});
    expect(log.map(({ line }) => line).join('\n')).toContain(' !     The release command took longer than 1 second');
  });

  it('rolls nothing out when the tenant would have more instances than it may', async () => {
    await deploy();
    await release({ Procfile: 'a: one\nb: two\nc: three\n' });
    const quotas = { ...core.context.settings.quotas, instances: 2 };
    const newest = (await listDeploys())[0]?.id as DeployId;
    await runDeployJob({ ...core.context, settings: { ...core.context.settings, quotas } }, newest, never);
    expect(await currentVersion()).toBe(1);
    expect((await listDeploys())[0]).toMatchObject({ status: 'failed', error: expect.stringContaining('allows 2 instances') });
  });

  it('is superseded by a newer release that waits', async () => {
    await release({ more: '' });
    await deploy(1);
    await deploy(2);
    expect(await listDeploys()).toMatchObject([
      { version: 2, status: 'live' },
      { version: 1, status: 'superseded' },
    ]);
  });

  it('is finished by the next worker when its own stops', async () => {
    const stopping = new AbortController();
    core.script = {
      boot: () => {
        stopping.abort(new Error('stopping'));
        return undefined;
      },
    };
    await expect(deploy(1, stopping.signal)).rejects.toThrow('stopping');
    expect(await listDeploys()).toMatchObject([{ status: 'rolling' }]);
    core.script = {};
    await deploy();
    expect(await currentVersion()).toBe(1);
  });

  it('is superseded when a newer release went live after its worker stopped: the app does not go back', async () => {
    const stopping = new AbortController();
    core.script = {
      boot: () => {
        stopping.abort(new Error('stopping'));
        return undefined;
      },
    };
    await expect(deploy(1, stopping.signal)).rejects.toThrow('stopping');
    core.script = {};
    await release({ more: '' });
    await deploy(2);
    expect(await currentVersion()).toBe(2);
    await deploy(1);
    expect(await currentVersion()).toBe(2);
    expect(await listDeploys()).toMatchObject([
      { version: 2, status: 'live' },
      { version: 1, status: 'superseded' },
    ]);
  });

  it('ends when its app is deleted in the middle', async () => {
    await release({ Procfile: 'web: serve\nrelease: migrate\n' });
    core.script = {
      run: async (_command, _line, signal) => {
        await core.services.appDeletion.deleteApp(owner, app.id);
        // The deploy may have noticed it before this line runs.
        signal.throwIfAborted();
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }));
      },
    };
    await deploy();
    await core.services.appDeletion.restoreApp(owner, app.id);
    expect(await listDeploys()).toMatchObject([{ version: 2, status: 'superseded', error: 'The app was deleted.' }, {}]);
    expect(await currentVersion()).toBeUndefined();
  });

  it('fails when the variables of its release cannot be read', async () => {
    await core.context.db.updateTable('releases').set({ config: 'v1.sealed.otherwise' }).where('app_id', '=', app.id).execute();
    await deploy();
    expect(await listDeploys()).toMatchObject([{ status: 'failed' }]);
    expect((await listReleases())[0]?.status).toBe('failed');
  });

  it('leaves the running image to a change of config, when newer releases did not start', async () => {
    await deploy();
    const [first] = await listReleases();
    await release({ broken: '' });
    await core.services.config.changeConfig(owner, app.id, { A: '1' });
    refuseToBoot();
    await deploy(2);
    await deploy(3);
    expect(await listDeploys()).toMatchObject([{ status: 'aborted' }, { status: 'aborted' }, { status: 'live' }]);
    await core.services.config.changeConfig(owner, app.id, { A: '2' });
    const [newest] = await listReleases();
    expect(newest).toMatchObject({ version: 4, kind: 'config', imageUrl: first?.imageUrl });
  });
});
