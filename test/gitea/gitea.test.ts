import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { buildGitea } from '#test/gitea/build-gitea.ts';
import { type DeliveryRelay, type RelayedDelivery, startDeliveryRelay } from '#test/gitea/delivery-relay.ts';
import { type GiteaServer, startGitea } from '#test/gitea/gitea-server.ts';
import { nodeApp } from '#test/support/builds/sample-apps.ts';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser, type User, visit, type WorkingCopy } from '#test/support/platform/user.ts';

const slow = { timeout: 60_000, interval: 200 };

interface BuildAnswer {
  id: string;
  commit: string | null;
  status: string;
  error: string | null;
}
interface GitSourceAnswer {
  branch: string;
  webhook: { url: string; secret: string; events: string[] };
}

/** A private repository at Gitea with a webhook, and an app that follows it. The tests follow one another. */
describe('an app that follows a private repository of a real Gitea', () => {
  let gitea: GiteaServer;
  let platform: RunningPlatform;
  let user: User;
  let relay: DeliveryRelay;
  let copy: WorkingCopy;
  let token = '';
  let hook = { id: 0 };
  let source: GitSourceAnswer;
  const commits: Record<string, string> = {};
  let repository = '/repos/ann/site';

  beforeAll(async () => {
    gitea = await startGitea(await buildGitea(process.env));
    platform = await startPlatform({
      env: { PAAS_WEBHOOK_SECRET: 'a secret of the operator', PAAS_ALLOW_PRIVATE_SOURCES: 'true' },
    });
    user = await createUser(platform);
    await gitea.api('POST', '/user/repos', { name: 'site', private: true, default_branch: 'trunk' });
    const scopes = ['write:repository', 'write:issue'];
    token = (await gitea.api<{ sha1: string }>('POST', '/users/ann/tokens', { name: 'paas', scopes })).sha1;
    copy = await user.createWorkingCopy(`${gitea.urlWithPassword}/ann/site.git`, nodeApp('one'));
    await user.createApp('site');
  });
  afterEach(({ task }) => {
    if (task.result?.state === 'fail') console.error(platform.output());
  });
  afterAll(async () => {
    await relay?.close();
    await user?.remove();
    if (platform !== undefined) await removePlatform(platform);
    await gitea?.remove();
  });

  const served =
    (app = 'site') =>
    async () =>
      (await visit(platform, app)).body;
  const latestBuild = () => user.api<BuildAnswer>('GET', '/v1/apps/site/builds/latest');
  const countBuilds = async () => (await user.api<BuildAnswer[]>('GET', '/v1/apps/site/builds')).length;
  const untilLive = async () => {
    const latest = async () => (await user.api<{ status: string }[]>('GET', '/v1/apps/site/deploys'))[0]?.status;
    await expect.poll(latest, slow).toBe('live');
  };

  /** Deliveries about branches: those about pull requests and our own comments in them are left out. */
  const moves = () => relay.deliveries.filter(({ headers }) => /^(push|delete)$/.test(String(headers['x-gitea-event'])));

  /** Pushes to Gitea, and waits for what the platform answered to its delivery. */
  async function push(...args: string[]): Promise<RelayedDelivery> {
    const before = moves().length;
    const { code, output } = await copy.push('paas', ...args);
    expect([code, output]).toEqual([0, output]);
    return delivered(before);
  }

  async function delivered(before: number): Promise<RelayedDelivery> {
    await expect.poll(() => moves().length, slow).toBeGreaterThan(before);
    const delivery = moves().at(-1);
    if (delivery === undefined) throw new Error('There is no delivery.');
    return delivery;
  }

  it('needs a token that Gitea accepts, and then follows the default branch there', async () => {
    expect((await copy.push('paas', 'main:trunk')).code).toBe(0);
    const url = `${gitea.url}/ann/site.git`;
    await user.api('PUT', '/v1/apps/site/git', { url });
    await user.api('POST', '/v1/apps/site/builds', {});
    await expect.poll(async () => (await latestBuild()).error, slow).toContain('paas git:source:set URL --token');
    const refused = await user.ask('PUT', '/v1/apps/site/git', { url, token: 'not-a-token' });
    expect(refused.status).toBe(422);
    await user.api('PUT', '/v1/apps/site/git', { url, token });
    source = await user.api<GitSourceAnswer>('GET', '/v1/apps/site/git');
    expect([source.branch, JSON.stringify(source).includes(token)]).toEqual(['trunk', false]);
    await user.api('POST', '/v1/apps/site/builds', {});
    await expect.poll(served(), slow).toBe('one');
    await untilLive();
  });

  it('is built on each push, also when the branch goes back and forward again', async () => {
    relay = await startDeliveryRelay(source.webhook.url);
    const { secret, events } = source.webhook;
    hook = await gitea.api('POST', `${repository}/hooks`, {
      type: 'gitea',
      active: true,
      events,
      config: { url: relay.url, content_type: 'json', secret },
    });
    commits['one'] = (await copy.git('rev-parse', 'HEAD')).stdout.trim();
    commits['two'] = await copy.commit(nodeApp('two'));
    for (const [word, commit] of [['two', commits['two']], ['one', commits['one']], ['two', commits['two']]]) {
      const { status, answer } = await push('--force', `${commit}:trunk`);
      expect([status, answer.data?.outcome]).toEqual([200, 'started']);
      await expect.poll(served(), slow).toBe(word);
      await untilLive();
    } // biome-ignore format: a table
  });

  it('has the status of each build at its commit', async () => {
    const statuses = () =>
      gitea.api<{ context: string; status: string }[]>('GET', `${repository}/commits/${commits['two']}/statuses`);
    const latest = async () => (await statuses()).map(({ context, status }) => `${context} ${status}`)[0];
    await expect.poll(latest, slow).toBe('paas/site success');
  });

  it('is not moved by an old delivery that comes again, under its own id or another', async () => {
    const before = await countBuilds();
    const [, back] = relay.deliveries;
    if (back === undefined) throw new Error('There is no such delivery.');
    expect((await relay.repeat(back)).answer.data?.outcome).toBe('replayed');
    expect((await relay.repeat(back, crypto.randomUUID())).answer.data?.outcome).toBe('ignored');
    expect([await countBuilds(), await served()()]).toEqual([before, 'two']);
  });

  it('is built by deliveries as forms, which Gitea signs over the JSON in them', async () => {
    const config = { url: relay.url, content_type: 'form', secret: source.webhook.secret };
    const { events } = source.webhook;
    await gitea.api('PATCH', `${repository}/hooks/${hook.id}`, { events, config });
    await copy.commit(nodeApp('three'));
    const { headers, status, answer } = await push('main:trunk');
    expect(headers['content-type']).toContain('application/x-www-form-urlencoded');
    expect([status, answer.data?.outcome]).toEqual([200, 'started']);
    await expect.poll(served(), slow).toBe('three');
    await untilLive();
    await gitea.api('PATCH', `${repository}/hooks/${hook.id}`, { events, config: { ...config, content_type: 'json' } });
  });

  it('has a preview of another branch', async () => {
    await copy.git('checkout', '-q', '-b', 'feature');
    await copy.commit(nodeApp('preview'));
    expect((await push('feature')).answer.data?.outcome).toBe('started');
    await expect.poll(served('site-feature'), slow).toBe('preview');
  });

  it('is shown in the pull request of its branch, by one comment', async () => {
    const comments = async () => {
      const found = await gitea.api<{ body: string }[]>('GET', `${repository}/issues/1/comments`);
      return found.map(({ body }) => body).join('\n---\n');
    };
    await gitea.api('POST', `${repository}/pulls`, { head: 'feature', base: 'trunk', title: 'A feature' });
    await expect
      .poll(comments, slow)
      .toMatch(/^<!-- paas preview .* -->\nThe preview of [0-9a-f]{8} is live at http.*site-feature/);
    await copy.commit(nodeApp('preview again'));
    await push('feature');
    await expect.poll(served('site-feature'), slow).toBe('preview again');
    const head = (await copy.git('rev-parse', '--short=8', 'HEAD')).stdout.trim();
    await expect.poll(comments, slow).toContain(head);
    expect(await comments()).not.toContain('---');
  });

  it('loses the preview when the branch is deleted at Gitea', async () => {
    const before = moves().length;
    await gitea.api('DELETE', `${repository}/branches/feature`);
    const { headers, answer } = await delivered(before);
    expect(headers['x-gitea-event']).toBe('delete');
    expect(answer.data?.outcome).toBe('removed');
    await expect.poll(async () => (await visit(platform, 'site-feature')).status, slow).toBe(404);
  });

  it('catches up with a push whose delivery was lost', async () => {
    await copy.git('checkout', '-q', 'main');
    relay.isLosing = true;
    await copy.commit(nodeApp('lost'));
    expect((await copy.push('paas', 'main:trunk')).code).toBe(0);
    relay.isLosing = false;
    const before = moves().length;
    await gitea.api('POST', `${repository}/branches`, { new_branch_name: 'other', old_branch_name: 'trunk' });
    await delivered(before);
    await expect.poll(served(), slow).toBe('lost');
    await untilLive();
  });

  it('waits for a Gitea that is down, and is built when that is back', async () => {
    const commit = await copy.commit(nodeApp('back'));
    relay.isLosing = true;
    expect((await copy.push('paas', 'main:trunk')).code).toBe(0);
    relay.isLosing = false;
    await gitea.stop();
    await user.api('POST', '/v1/apps/site/builds', {});
    const log = async () =>
      (await user.api<{ line: string }[]>('GET', '/v1/apps/site/builds/latest/logs')).map(({ line }) => line).join('\n');
    await expect.poll(log, slow).toContain('Trying again in');
    expect((await latestBuild()).status).toBe('running');
    await gitea.start();
    await expect.poll(served(), slow).toBe('back');
    expect((await latestBuild()).commit).toBe(commit);
    await untilLive();
  });

  it('is still fetched when the repository is renamed, and its deliveries say what to change', async () => {
    await gitea.api('PATCH', repository, { name: 'renamed' });
    repository = '/repos/ann/renamed';
    await copy.git('remote', 'set-url', 'paas', `${gitea.urlWithPassword}/ann/renamed.git`);
    await copy.commit(nodeApp('renamed'));
    const told = await push('main:trunk');
    expect([told.status, told.answer.error?.message]).toEqual([404, expect.stringContaining('paas git:source:set')]);
    await user.api('POST', '/v1/apps/site/builds', {});
    await expect.poll(served(), slow).toBe('renamed');
    await untilLive();
    await user.api('PUT', '/v1/apps/site/git', { url: `${gitea.url}/ann/renamed` });
    await copy.commit(nodeApp('again'));
    expect((await push('main:trunk')).answer.data?.outcome).toBe('started');
    await expect.poll(served(), slow).toBe('again');
  });

  it('lists the last deliveries with what was answered', async () => {
    const deliveries = await user.api<{ provider: string; outcome: string }[]>('GET', '/v1/apps/site/git/deliveries');
    expect(deliveries[0]).toMatchObject({ provider: 'gitea', outcome: 'started' });
    expect(new Set(deliveries.map(({ outcome }) => outcome))).toContain('refused');
  });
});
