import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPerson } from '#cli/testing/person.ts';
import { nodeApp } from '#test/support/builds/sample-apps.ts';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser, type User, visit, type WorkingCopy } from '#test/support/platform/user.ts';
import { type GitHttpServer, startGitHttpServer } from '#test/support/servers/git-http-server.ts';

interface BuildAnswer {
  id: string;
  status: string;
  commit: string | null;
  error: string | null;
}

const secret = 'a secret that the git host knows';
const nothing = '0'.repeat(40);

describe('a push to a git host elsewhere', () => {
  let platform: RunningPlatform;
  let user: User;
  let host: GitHttpServer;
  beforeAll(async () => {
    host = await startGitHttpServer();
    platform = await startPlatform({ env: { PAAS_WEBHOOK_SECRET: secret, PAAS_ALLOW_PRIVATE_SOURCES: 'true' } });
    user = await createUser(platform);
  });
  afterAll(async () => {
    await user?.remove();
    await removePlatform(platform);
    await host?.close();
  });

  /** As the git host does it. */
  async function deliver(repository: string, ref: string, before: string, after: string) {
    const clone_url = `${host.url}/${repository}.git`;
    const body = JSON.stringify({ ref, before, after, deleted: after === nothing, repository: { clone_url } });
    const answer = await fetch(`${platform.baseUrl}/v1/webhooks/githost`, {
      method: 'POST',
      body,
      headers: {
        'content-type': 'application/json',
        'x-gitea-event': 'push',
        'x-gitea-delivery': crypto.randomUUID(),
        'x-gitea-signature': createHmac('sha256', secret).update(body).digest('hex'),
      },
    });
    return ((await answer.json()) as { data: { outcome: string } }).data;
  }

  async function createFollower(name: string): Promise<WorkingCopy> {
    await user.createApp(name);
    const path = await host.createRepository(`${name}.git`);
    await user.api('PUT', `/v1/apps/${name}/git`, { url: `${host.url}/${name}`, branch: 'main' });
    return user.createWorkingCopy(path, nodeApp('one'));
  }

  async function push(copy: WorkingCopy, ...args: string[]): Promise<string> {
    expect((await copy.push('paas', ...args)).code).toBe(0);
    return (await copy.git('rev-parse', 'HEAD')).stdout.trim();
  }

  const latest = (app: string) => user.api<BuildAnswer>('GET', `/v1/apps/${app}/builds/latest`);
  const latestDeploy = async (app: string) =>
    (await user.api<[{ status: string; version: number }]>('GET', `/v1/apps/${app}/deploys`))[0];
  const served = (app: string) => async () => (await visit(platform, app)).body;

  it('is fetched, built and served, each time only what is new; a branch is a preview until it is deleted', async () => {
    const copy = await createFollower('followed');
    const first = await push(copy, 'main');
    // The delivery is answered although the host gives no answer itself until then.
    const release = host.hold();
    expect((await deliver('followed', 'refs/heads/main', nothing, first)).outcome).toBe('started');
    release();
    await expect.poll(served('followed'), { timeout: 40_000 }).toBe('one');
    expect((await user.git(user.home, ['ls-remote', await pushUrl('followed')])).stdout).toContain(`${first}\trefs/heads/main`);

    await copy.commit(nodeApp('two'));
    const second = await push(copy, 'main');
    await deliver('followed', 'refs/heads/main', first, second);
    await expect.poll(async () => (await latestDeploy('followed')).version, { timeout: 40_000 }).toBe(2);
    await expect.poll(async () => (await latestDeploy('followed')).status, { timeout: 40_000 }).toBe('live');
    expect(await served('followed')()).toBe('two');

    await copy.git('checkout', '-q', '-b', 'feature');
    await copy.commit(nodeApp('preview'));
    const third = await push(copy, 'feature');
    await deliver('followed', 'refs/heads/feature', nothing, third);
    await expect.poll(served('followed-feature'), { timeout: 40_000 }).toBe('preview');
    expect(await served('followed')()).toBe('two');
    expect((await copy.push('paas', '--delete', 'feature')).code).toBe(0);
    expect((await deliver('followed', 'refs/heads/feature', third, nothing)).outcome).toBe('removed');
    await expect.poll(async () => (await visit(platform, 'followed-feature')).status, { timeout: 20_000 }).toBe(404);

    // What was fetched is a repository like any other.
    const cloned = await user.git(user.home, ['clone', '-q', await pushUrl('followed'), 'followed-clone']);
    expect(cloned.output).toBe('');
    expect((await user.git(`${user.home}/followed-clone`, ['fsck', '--full', '--strict'])).code).toBe(0);
  });

  it('that was forced is followed too, and builds:create builds what the branch is there', async () => {
    const copy = await createFollower('forced');
    const first = await push(copy, 'main');
    await deliver('forced', 'refs/heads/main', nothing, first);
    await expect.poll(served('forced'), { timeout: 40_000 }).toBe('one');
    await copy.git('commit', '-q', '--amend', '-m', 'Another first');
    const forced = await push(copy, '--force', 'main');
    await user.api('POST', '/v1/apps/forced/builds', {});
    await expect.poll(async () => (await latest('forced')).commit, { timeout: 20_000 }).toBe(forced);
    await expect.poll(async () => (await latest('forced')).status, { timeout: 40_000 }).toBe('succeeded');
  });

  it('that the git host does not have builds nothing, and a repository that cannot be fetched is a failed build', async () => {
    await createFollower('empty');
    expect(await deliver('empty', 'refs/heads/main', nothing, 'b'.repeat(40))).toEqual({
      outcome: 'ignored',
      message: 'The git host has no branch main.',
    });
    await user.api('PUT', '/v1/apps/empty/git', { url: `${host.url}/nobody`, branch: 'main' });
    await user.api('POST', '/v1/apps/empty/builds', {});
    await expect.poll(async () => (await latest('empty')).error, { timeout: 20_000 }).toContain('answered 404');
  });

  async function pushUrl(app: string): Promise<string> {
    return (await user.api<{ push_url: string }>('GET', `/v1/apps/${app}`)).push_url;
  }

  it('is shown by the command line, with everything that the git host needs', async () => {
    await user.createApp('told');
    const person = await createPerson({ PAAS_API_URL: platform.baseUrl, PAAS_TOKEN: user.token, PAAS_APP: 'told' });
    try {
      const address = 'ssh://git@git.example.com/ada/told.git';
      const set = await person.paas(['git:source:set', address, '--branch', 'production']);
      expect(set.stderr).toBe(`Setting the git source of told... ${address}, branch production\n`);
      const shown = await person.paas(['git:source']);
      expect(shown.stdout).toBe(set.stdout);
      const { webhook, deploy_key: key } = JSON.parse((await person.paas(['git:source', '--json'])).stdout) as {
        webhook: { url: string; secret: string };
        deploy_key: string;
      };
      expect(shown.stdout.split('\n').map((line) => line.split(/: +/))).toEqual([
        ['source', address],
        ['branch', 'production'],
        ['webhook', webhook.url],
        ['secret', webhook.secret],
        ['content type', 'application/json'],
        ['events', 'push, delete, pull_request'],
        ['deploy key', key],
        [''],
      ]);
      expect(key).toMatch(/^ssh-ed25519 AAAA/);

      expect((await person.paas(['git:source:remove'])).code).toBe(0);
      expect((await person.paas(['git:source'])).stdout).toMatch(/^source: +git push\nbranch: +production\n/);
      const refused = await person.paas(['git:source:set', 'file:///etc']);
      expect([refused.code, refused.stdout]).toEqual([2, '']);
    } finally {
      await person.remove();
    }
  });
});
