import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runLookJob } from '#shared/core/webhooks/source-look-job.ts';
import type { AppId } from '#shared/ids.ts';
import { commit, createGitHost, type GitHostFixture, nothing, push, sign, webhookPath } from '#test/support/api/git-host.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
let host: GitHostFixture;
beforeAll(async () => {
  test = await createTestApi();
  host = createGitHost(test);
  ada = await test.signUp();
});
afterAll(() => test?.close());

describe('the branches of the git host', () => {
  const look = (app: { id: string }) => runLookJob(test.context, app.id as AppId, 0, new AbortController().signal);
  const commitsOf = async (app: string) => (await host.readBuilds(ada, app)).map((build) => build['commit']);
  const endBuilds = (app: { id: string }, status: 'failed' | 'succeeded') =>
    test.context.db
      .updateTable('builds')
      .set({ status, finished_at: test.clock.now() })
      .where('app_id', '=', app.id as AppId)
      .where('status', '=', 'queued')
      .execute();

  it('are built when they go back and forth, and an old delivery under a new id moves nothing back', async () => {
    const app = await host.createFollower(ada, 'https://git.example.com/ada/forth');
    const [one, two] = [commit(), commit()];
    const first = host.pushTo('ada/forth', 'main', one);
    await host.deliver(first);
    for (const after of [two, one, two]) {
      expect((await host.deliver(host.pushTo('ada/forth', 'main', after))).body.data).toMatchObject({
        outcome: 'started',
        message: `A build of main at ${after.slice(0, 8)} was started.`,
      });
    }
    expect((await host.deliver(first)).body.data.outcome).toBe('ignored');
    expect(await commitsOf(app.id)).toEqual([two, one, two, one]);
  });

  it('are built again by a repeated delivery when the build failed', async () => {
    const app = await host.createFollower(ada, 'https://git.example.com/ada/failing');
    const payload = host.pushTo('ada/failing', 'main');
    await host.deliver(payload);
    await endBuilds(app, 'failed');
    expect((await host.deliver(payload)).body.data.outcome).toBe('started');
    await endBuilds(app, 'succeeded');
    expect((await host.deliver(payload)).body.data.outcome).toBe('ignored');
    expect(await commitsOf(app.id)).toEqual([payload.after, payload.after]);
  });

  it('are looked at now and then, so that lost deliveries are made up for', async () => {
    const app = await host.createFollower(ada, 'https://git.example.com/ada/lost');
    host.pushTo('ada/lost', 'old');
    const first = host.pushTo('ada/lost', 'main');
    await host.deliver(first);
    await look(app);
    expect(await commitsOf(app.id)).toEqual([first.after]);
    const second = host.pushTo('ada/lost', 'main');
    const third = host.pushTo('ada/lost', 'feature');
    await look(app);
    await look(app);
    expect(await commitsOf(app.id)).toEqual([second.after, first.after]);
    expect(await commitsOf(`${app.name}-feature`)).toEqual([third.after]);
    // It was there before the first delivery, and nobody has pushed to it since.
    expect((await test.ask('GET', `/v1/apps/${app.name}-old`, { as: ada })).status).toBe(404);
    host.pushTo('ada/lost', 'feature', nothing);
    await look(app);
    expect((await test.ask('GET', `/v1/apps/${app.name}-feature/builds`, { as: ada })).status).toBe(404);
  });

  it('remove a preview by the event that Gitea has for the deletion of a branch', async () => {
    const app = await host.createFollower(ada, 'https://git.example.com/ada/pruned');
    await host.deliver(host.pushTo('ada/pruned', 'topic'));
    expect((await test.ask('GET', `/v1/apps/${app.name}-topic/builds`, { as: ada })).status).toBe(200);
    const { repository } = host.pushTo('ada/pruned', 'topic', nothing);
    const body = JSON.stringify({ ref: 'topic', ref_type: 'branch', pusher_type: 'user', repository });
    const headers = { 'x-gitea-event': 'delete', 'x-gitea-delivery': 'd-1', 'x-gitea-signature': sign(body).slice(7) };
    const { body: answer } = await test.ask('POST', webhookPath, {
      body,
      headers: { 'content-type': 'application/json', ...headers },
    });
    expect(answer.data).toEqual({ outcome: 'removed', message: 'The preview of topic is removed.' });
    expect((await test.ask('GET', `/v1/apps/${app.name}-topic/builds`, { as: ada })).status).toBe(404);
  });

  it('stay while the git host has them, whatever a delivery says of their deletion', async () => {
    const app = await host.createFollower(ada, 'https://git.example.com/ada/kept');
    await host.deliver(host.pushTo('ada/kept', 'topic'));
    await host.deliver(push('ada/kept', { ref: 'refs/heads/topic', before: commit(), after: nothing, deleted: true }));
    expect((await test.ask('GET', `/v1/apps/${app.name}-topic`, { as: ada })).status).toBe(200);
  });

  it('are not built for a commit whose message says so', async () => {
    const app = await host.createFollower(ada, 'https://git.example.com/ada/skipped');
    const payload = host.pushTo('ada/skipped', 'main');
    const head_commit = { id: payload.after, message: 'Fix a typo [skip ci]' };
    expect((await host.deliver({ ...payload, head_commit })).body.data.outcome).toBe('ignored');
    await look(app);
    expect(await commitsOf(app.id)).toEqual([]);
  });

  it('are fetched by one build, as they are then, when the git host does not answer, and asked for again', async () => {
    const app = await host.createFollower(ada, 'https://git.example.com/ada/away');
    expect((await host.deliver(push('ada/away'))).body.data).toEqual({
      outcome: 'started',
      message: 'A build of main was started.',
    });
    expect((await host.deliver(push('ada/away'))).body.data.outcome).toBe('ignored');
    expect(await commitsOf(app.id)).toEqual([null]);
    const deletion = push('ada/away', { ref: 'refs/heads/topic', before: commit(), after: nothing, deleted: true });
    expect((await host.deliver(deletion)).body.data.outcome).toBe('accepted');
    await expect(look(app)).resolves.toBeUndefined();
    await endBuilds(app, 'failed');
    const { after } = host.pushTo('ada/away', 'main');
    await look(app);
    expect(await commitsOf(app.id)).toEqual([null]);
    const later = host.pushTo('ada/away', 'main');
    await look(app);
    expect(await commitsOf(app.id)).toEqual([later.after, null]);
    expect(later.before).toBe(after);
  });

  it('of other tenants are not asked for when one delivery is of many apps', async () => {
    const apps = await Promise.all(
      Array.from({ length: 12 }, async () => host.createFollower(await test.signUp(), 'https://git.example.com/ada/many')),
    );
    expect((await host.deliver(host.pushTo('ada/many', 'main'))).body.data.outcome).toBe('started');
    for (const app of apps) await look(app);
    const builds = await test.context.db
      .selectFrom('builds')
      .select('app_id')
      .where(
        'app_id',
        'in',
        apps.map(({ id }) => id as AppId),
      )
      .execute();
    expect(builds).toHaveLength(12);
  });
});
