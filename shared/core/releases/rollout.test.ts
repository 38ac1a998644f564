import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { runBuildJob } from '#shared/core/builds/build-job.ts';
import { runDeployJob } from '#shared/core/releases/deploy-job.ts';
import { claimDeploy } from '#shared/core/releases/deploys-store.ts';
import { movedMessage } from '#shared/core/repositories/ref-moves.ts';
import type { DeployId, ObjectId } from '#shared/ids.ts';
import { type CoreFixture, createCoreFixture, type FixtureApp } from '#test/support/core/core-fixture.ts';

const never = new AbortController().signal;
const patience = { timeout: 20_000 };

/** Rollouts of a second release beside a first that serves, on a fake platform whose facts the tests make. */
describe('a rollout', () => {
  let core: CoreFixture;
  let owner: Principal;
  let app: FixtureApp;
  beforeAll(async () => {
    core = await createCoreFixture();
    owner = await core.signUp();
  });
  afterAll(() => core.close());
  beforeEach(async () => {
    core.script = {};
    app = await core.createApp(owner);
    await release();
    await deploy();
    await release({ more: '' });
  });

  async function release(files: Record<string, string> = {}): Promise<void> {
    await app.commit(files);
    await app.push('-o', 'detach', 'main');
    await runBuildJob(core.context, (await core.latestBuild(app.id)).id, never);
  }
  const listDeploys = async () => (await core.services.releases.listDeploys(owner, app.id, { limit: 50 })).items;
  /** Of the newest release, with steps that take a minute where there are visitors. */
  async function deploy(signal = never): Promise<void> {
    const [newest] = await listDeploys();
    const settings = { ...core.context.settings, canaryStepSeconds: 60 };
    await runDeployJob({ ...core.context, settings }, newest?.id as DeployId, signal);
  }
  const weights = async () =>
    ((await core.platform.router.readRoute(app.id))?.backends ?? []).map(({ releaseVersion, weight }) => [
      releaseVersion,
      weight,
    ]);
  const readLog = async () =>
    (await core.services.builds.readBuildLog(owner, app.id, 'latest', {})).map(({ line }) => line).join('\n');

  /** Both releases fail: no answer is good enough to pass a step, and the new release is not worse. */
  const undecided = () => 500;

  /** Visitors during `work`, each answered at once with the status of the release that it gets. @returns how many were refused */
  async function withVisitors(status: (releaseVersion: number) => number, work: () => Promise<unknown>): Promise<number> {
    const host = core.context.addresses.appHost(app.name);
    let count = 0;
    let refused = 0;
    const timer = setInterval(() => {
      count += 1;
      const request = core.platform.router.beginRequest(host);
      if (request === undefined) refused += 1;
      else request.end({ status: status(request.releaseVersion), path: '/' });
    }, 1);
    try {
      await expect.poll(() => count, patience).toBeGreaterThan(200);
      await work();
    } finally {
      clearInterval(timer);
    }
    return refused;
  }

  it('goes through every weight at once without visitors, and records each', async () => {
    await deploy();
    const [newest] = await listDeploys();
    expect(newest).toMatchObject({ status: 'live', weight: 100, error: null });
    expect(newest?.steps.map(({ weight }) => weight)).toEqual([0, 10, 25, 50, 100]);
    expect(await weights()).toEqual([[2, 100]]);
    expect(await readLog()).not.toMatch(/\d%: /);
    expect(await readLog()).toContain('No visitors to judge v2 by. Asked it instead: GET / answers 200');
    expect(await readLog()).toContain('-----> Rolling out: 10% 25% 50% 100%');
  });

  it('passes each step on enough good answers, logs their number, and refuses no request', async () => {
    expect(await withVisitors(() => 200, deploy)).toBe(0);
    expect((await listDeploys())[0]?.status).toBe('live');
    const judged = (await readLog()).match(/^ {7}\d+%: .*$/gm) ?? [];
    expect(judged.map((line) => line.replace(/\d+ requests?/, 'n requests'))).toEqual([
      '       10%: n requests, 0 errors',
      '       25%: n requests, 0 errors',
      '       50%: n requests, 0 errors',
    ]);
  });

  it('gives all traffic back to the old release when the new one answers with errors', async () => {
    const refused = await withVisitors((releaseVersion) => (releaseVersion === 2 ? 503 : 200), deploy);
    const [newest] = await listDeploys();
    expect(newest).toMatchObject({ status: 'aborted', weight: 0 });
    expect(newest?.error).toMatch(/^\d+ of \d+ requests failed at \d+% of the traffic, 0 of \d+ on the previous release$/);
    expect(await weights()).toEqual([[1, 100]]);
    expect(refused).toBe(0);
    expect(await readLog()).toContain('The previous release keeps serving.');
  });

  it('without visitors is not brought live when it answers 500 where the old release did not', async () => {
    core.platform.rollouts.answer(app.id, 2, 500);
    await deploy();
    expect((await listDeploys())[0]).toMatchObject({
      status: 'aborted',
      error: 'GET / answers 500, and 200 on the previous release',
    });
    expect(await weights()).toEqual([[1, 100]]);
    const log = await readLog();
    expect(log).toContain('No visitors to judge v2 by. Asked it instead: GET / answers 500');
    expect(log).toMatch(/Rolling out: 10% 25% 50%\n/);
  });

  it('without visitors is asked for the health path of the app, and the old release only to compare bad answers', async () => {
    const asked = core.platform.rollouts.questions.length;
    await core.services.settings.changeSettings(owner, app.id, { healthPath: '/up' });
    await deploy();
    expect(core.platform.rollouts.questions.slice(asked)).toEqual([3]);
    expect((await listDeploys())[0]).toMatchObject({ version: 3, status: 'live' });
    core.platform.rollouts.answer(app.id, 4, 500);
    await core.services.settings.changeSettings(owner, app.id, { bootTimeoutSeconds: 90 });
    await deploy();
    expect(core.platform.rollouts.questions.slice(asked)).toEqual([3, 4, 3]);
    expect((await listDeploys())[0]).toMatchObject({ error: 'GET /up answers 500, and 200 on the previous release' });
  });

  it('goes on after an instance has ended by the question for / alone, and the old release is not asked', async () => {
    core.platform.rollouts.answer(app.id, 2, 'gave no answer', 'web.1 exited with code 1');
    const asked = core.platform.rollouts.questions.length;
    const deploying = deploy();
    await expect.poll(readLog, patience).toContain('v2 ended when it was asked (web.1 exited with code 1).');
    expect(await weights()).toEqual([[1, 50], [2, 50]]); // biome-ignore format: pairs
    core.platform.rollouts.recover(app.id);
    await deploying;
    expect((await listDeploys())[0]).toMatchObject({ status: 'live', weight: 100 });
    expect(core.platform.rollouts.questions.slice(asked)).toEqual([2]);
    expect(await readLog()).toContain('paas settings:set health-path=/healthz');
  });

  it('is aborted when it ends by the question for / that visitors of the old release get an answer to', async () => {
    core.platform.router.beginRequest(core.context.addresses.appHost(app.name))?.end({ path: '/' });
    core.platform.rollouts.answer(app.id, 2, 'gave no answer', 'web.1 exited with code 1');
    const settings = { ...core.context.settings, canaryStepSeconds: 1 };
    await runDeployJob({ ...core.context, settings }, (await listDeploys())[0]?.id as DeployId, never);
    const [newest] = await listDeploys();
    expect(newest).toMatchObject({ status: 'aborted' });
    expect(newest?.error).toMatch(/which visitors of the previous release get$/);
  });

  it('is aborted when an instance of the new release crashes', async () => {
    await withVisitors(undecided, async () => {
      const deploying = deploy();
      await expect.poll(weights, patience).toEqual([[1, 90], [2, 10]]); // biome-ignore format: pairs
      core.platform.rollouts.crash(app.id, 'web.1 exited with code 1');
      await deploying;
    });
    expect((await listDeploys())[0]).toMatchObject({ status: 'aborted', error: 'web.1 exited with code 1 at 10%' });
    expect(await weights()).toEqual([[1, 100]]);
  });

  it('is aborted when its app is deleted', async () => {
    await withVisitors(undecided, async () => {
      const deploying = deploy();
      await expect.poll(weights, patience).toEqual([[1, 90], [2, 10]]); // biome-ignore format: pairs
      await core.services.appDeletion.deleteApp(owner, app.id);
      await deploying;
    });
    await core.services.appDeletion.restoreApp(owner, app.id);
    expect((await listDeploys())[0]).toMatchObject({ status: 'aborted', error: 'The app was deleted.' });
  });

  it('stays at its weight when its worker stops, and the next worker continues it', async () => {
    await withVisitors(undecided, async () => {
      const stopping = new AbortController();
      const deploying = deploy(stopping.signal);
      await expect.poll(async () => (await listDeploys())[0]?.weight, patience).toBe(10);
      stopping.abort(new Error('stopping'));
      await expect(deploying).rejects.toThrow('stopping');
      expect(await weights()).toEqual([[1, 90], [2, 10]]); // biome-ignore format: pairs
      expect((await listDeploys())[0]).toMatchObject({ status: 'rolling', weight: 10 });
    });
    const [, before] = await core.platform.workloads.readInstances(app.id);
    await deploy();
    expect((await listDeploys())[0]).toMatchObject({ status: 'live', weight: 100, error: null });
    expect((await core.platform.workloads.readInstances(app.id))[0]?.startedAt).toEqual(before?.startedAt);
  });

  describe('whose branch moved while its worker was gone', () => {
    /** What the deploy wants is behind the branch from now on. */
    async function moveBranch(id: DeployId): Promise<void> {
      const [from, to] = ['1'.repeat(40), await app.git('rev-parse', 'HEAD~1')] as ObjectId[];
      const changes = JSON.stringify([{ name: 'refs/heads/main', from, to }]);
      await core.context.db.updateTable('deploys').set({ ref_changes: changes }).where('id', '=', id).execute();
    }
    const newest = async () => (await listDeploys())[0] ?? { id: '' as DeployId };

    it('is superseded when it had not begun', async () => {
      const { id } = await newest();
      await claimDeploy(core.context.db, id);
      await moveBranch(id);
      await deploy();
      expect(await newest()).toMatchObject({ status: 'superseded', error: movedMessage, weight: 0, steps: [] });
      expect(await readLog()).not.toContain('Starting v2');
      expect(await weights()).toEqual([[1, 100]]);
    });

    it('is superseded, and its instances go, when the platform had begun and no step was recorded', async () => {
      const readFacts = core.platform.rollouts.watchRollout;
      const stopping = new AbortController();
      core.platform.rollouts.watchRollout = () => {
        core.platform.rollouts.watchRollout = readFacts;
        stopping.abort(new Error('stopping'));
        return readFacts(app.id, stopping.signal);
      };
      const { id } = await newest();
      await expect(deploy(stopping.signal)).rejects.toThrow('stopping');
      await moveBranch(id);
      await deploy();
      expect(await newest()).toMatchObject({ status: 'superseded', error: movedMessage, weight: 0, steps: [] });
      expect(await weights()).toEqual([[1, 100]]);
      const versions = (await core.platform.workloads.readInstances(app.id)).map(({ releaseVersion }) => releaseVersion);
      expect(new Set(versions)).toEqual(new Set([1]));
    });

    it('is aborted when it had begun', async () => {
      const stopping = new AbortController();
      await withVisitors(undecided, async () => {
        const deploying = deploy(stopping.signal);
        await expect.poll(async () => (await listDeploys())[0]?.weight, patience).toBe(10);
        stopping.abort(new Error('stopping'));
        await expect(deploying).rejects.toThrow('stopping');
      });
      await moveBranch((await newest()).id);
      await deploy();
      expect(await newest()).toMatchObject({ status: 'aborted', error: movedMessage, weight: 0 });
      expect(await weights()).toEqual([[1, 100]]);
    });
  });

  it('gives no more orders once another attempt has claimed the deploy', async () => {
    const readFacts = core.platform.rollouts.watchRollout;
    const { id } = (await listDeploys())[0] ?? { id: '' as DeployId };
    core.platform.rollouts.watchRollout = async function* (...watched) {
      for await (const facts of readFacts(...watched)) {
        if (facts.weight === 25) await claimDeploy(core.context.db, id);
        yield facts;
      }
    };
    await deploy().finally(() => {
      core.platform.rollouts.watchRollout = readFacts;
    });
    expect((await listDeploys())[0]).toMatchObject({ status: 'rolling', weight: 10, error: null });
    expect(await weights()).toEqual([[1, 75], [2, 25]]); // biome-ignore format: pairs
    await deploy();
    expect((await listDeploys())[0]?.status).toBe('live');
  });

  it('fails when the platform cannot carry it out, and the release before has all traffic again', async () => {
    await withVisitors(undecided, async () => {
      const deploying = deploy();
      await expect.poll(weights, patience).toEqual([[1, 90], [2, 10]]); // biome-ignore format: pairs
      core.platform.rollouts.fail(app.id, 'The gateway does not answer.');
      await deploying;
    });
    expect((await listDeploys())[0]?.status).toBe('failed');
    expect(core.logged.join('\n')).toContain('The gateway does not answer.');
    await core.startWorker();
    await expect.poll(weights, patience).toEqual([[1, 100]]);
    await core.stopWorker();
  });
});
