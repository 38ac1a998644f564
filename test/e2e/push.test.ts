import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { crashingApp, nodeApp, slowApp, unbuildableApp } from '#test/support/builds/sample-apps.ts';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser, type User, visit } from '#test/support/platform/user.ts';

interface BuildAnswer {
  id: string;
  status: string;
  cache_state: string;
  error: string | null;
}
interface ReleaseAnswer {
  version: number;
  status: string;
  current: boolean;
}

describe('git push paas main', () => {
  let platform: RunningPlatform;
  let user: User;
  beforeAll(async () => {
    platform = await startPlatform({ empty: true });
    user = await createUser(platform);
  });
  afterAll(async () => {
    await user.remove();
    await removePlatform(platform);
  });

  it('builds, releases and serves an app, cold first and warm after', async () => {
    const app = await user.createApp('hello');
    const copy = await user.createWorkingCopy(app.push_url, nodeApp('one'));
    const first = await copy.push();
    expect(first.output).toContain('remote: -----> Node.js app detected (package.json)');
    expect(first.output).toContain('remote: -----> Releasing v1');
    expect(first.output).toMatch(/remote: {8}http:\/\/hello\.apps\.localhost:\d+ deployed\s*\n/);
    expect(first.code).toBe(0);
    expect(await visit(platform, 'hello')).toEqual({ status: 200, body: 'one' });

    await copy.commit(nodeApp('two'));
    const second = await copy.push();
    expect(second.output).toContain('remote: -----> Rolling out: 10% 25% 50% 100%');
    expect(second.code).toBe(0);
    expect(await visit(platform, 'hello')).toEqual({ status: 200, body: 'two' });

    const builds = await user.api<BuildAnswer[]>('GET', '/v1/apps/hello/builds');
    expect(builds.map((build) => [build.status, build.cache_state])).toEqual([
      ['succeeded', 'Warm'],
      ['succeeded', 'Cold'],
    ]);
  });

  it('rejects the ref when the build fails, says why, and leaves the old release serving', async () => {
    const app = await user.createApp('fragile');
    const copy = await user.createWorkingCopy(app.push_url, nodeApp('good'));
    expect((await copy.push()).code).toBe(0);
    const good = (await copy.git('rev-parse', 'HEAD')).stdout.trim();

    await copy.commit(unbuildableApp());
    const failed = await copy.push();
    expect(failed.code).toBe(1);
    expect(failed.output).toContain('the build is broken');
    expect(failed.output).toContain('! [remote rejected] main -> main (build failed)');
    expect((await visit(platform, 'fragile')).body).toBe('good');
    expect((await copy.git('ls-remote', 'paas', 'refs/heads/main')).stdout).toContain(good);

    await copy.commit({ ...nodeApp('mended') });
    expect((await copy.push()).code).toBe(0);
    expect((await visit(platform, 'fragile')).body).toBe('mended');
  });

  it('leaves the old release serving when the new one does not become healthy', async () => {
    const app = await user.createApp('sickly');
    const copy = await user.createWorkingCopy(app.push_url, nodeApp('healthy'));
    expect((await copy.push()).code).toBe(0);
    await copy.commit(crashingApp());
    const pushed = await copy.push();
    expect(pushed.code).toBe(1);
    expect(pushed.output).toContain('! [remote rejected] main -> main (deploy failed)');
    expect(pushed.output).toContain('cannot find my shoes');
    expect(pushed.output).toContain('v2 was not rolled out');
    expect((await visit(platform, 'sickly')).body).toBe('healthy');
    const releases = await user.api<ReleaseAnswer[]>('GET', '/v1/apps/sickly/releases');
    expect(releases.map(({ version, status, current }) => ({ version, status, current }))).toEqual([
      { version: 2, status: 'failed', current: false },
      { version: 1, status: 'succeeded', current: true },
    ]);
  });

  it('queues pushes at once to one app: the newest waiting one wins, none hangs', async () => {
    const app = await user.createApp('busy');
    const copy = await user.createWorkingCopy(app.push_url, slowApp('first', 4));
    const first = copy.push();
    await untilBuilds(user, 'busy', (builds) => builds.some((build) => build.status === 'running'));
    await copy.commit(nodeApp('second'));
    const second = copy.push();
    await untilBuilds(user, 'busy', (builds) => builds.length === 2);
    await copy.commit(nodeApp('third'));
    const third = copy.push();
    const [one, two, three] = await Promise.all([first, second, third]);
    expect(one.code).toBe(0);
    expect(two.output).toContain('superseded by a newer push');
    expect(two.code).toBe(1);
    expect(three.code).toBe(0);
    expect((await visit(platform, 'busy')).body).toBe('third');
  });

  it('goes on with a build whose client has gone, and lets the log be picked up', async () => {
    const app = await user.createApp('patient');
    const copy = await user.createWorkingCopy(app.push_url, slowApp('done', 3));
    const hangUp = new AbortController();
    const pushing = user.git(copy.directory, ['push', 'paas', 'main'], {
      signal: hangUp.signal,
      onOutput: (text) => text.includes('building slowly') && hangUp.abort(),
    });
    await pushing.catch(() => undefined);
    const answer = await fetch(`${platform.baseUrl}/v1/apps/patient/builds/latest/logs`, {
      headers: { authorization: `Bearer ${user.token}`, accept: 'text/event-stream' },
    });
    expect(await answer.text()).toContain('deployed');
    expect((await visit(platform, 'patient')).body).toBe('done');
    const tip = (await copy.git('rev-parse', 'HEAD')).stdout.trim();
    expect((await copy.git('ls-remote', 'paas', 'refs/heads/main')).stdout).toContain(tip);
  });

  it('gives clones back that a stock git takes', async () => {
    const app = await user.createApp('mirrored');
    const copy = await user.createWorkingCopy(app.push_url, nodeApp('mirror'));
    expect((await copy.push()).code).toBe(0);
    const cloned = await user.git(user.home, ['clone', '-q', app.push_url, 'mirrored-clone']);
    expect(cloned.output).toBe('');
    const checked = await user.git(`${user.home}/mirrored-clone`, ['fsck', '--full', '--strict']);
    expect(checked.code).toBe(0);
  });

  it('makes a preview of another branch, and removes it with the branch', async () => {
    const app = await user.createApp('staged');
    const copy = await user.createWorkingCopy(app.push_url, nodeApp('production'));
    expect((await copy.push()).code).toBe(0);
    await user.api('PATCH', '/v1/apps/staged/config', { PRODUCTION_SECRET: 'for production only' });
    await copy.git('checkout', '-q', '-b', 'feature/login');
    await copy.commit(nodeApp('preview'));
    const pushed = await copy.push('paas', 'feature/login');
    expect(pushed.output).toMatch(/http:\/\/staged-feature-login\.apps\.localhost:\d+ deployed/);
    expect((await visit(platform, 'staged-feature-login')).body).toBe('preview');
    expect((await visit(platform, 'staged')).body).toBe('production');
    expect((await visit(platform, 'staged-feature-login', '/env')).body).not.toContain('for production only');

    expect((await copy.push('paas', '--delete', 'feature/login')).code).toBe(0);
    await expect.poll(async () => (await user.ask('GET', '/v1/apps/staged-feature-login')).status, { timeout: 20_000 }).toBe(404);
    expect((await visit(platform, 'staged-feature-login')).status).toBe(404);
  });

  it('says how to build again what is there already, and builds it again', async () => {
    const app = await user.createApp('repeated');
    const copy = await user.createWorkingCopy(app.push_url, nodeApp('again'));
    expect((await copy.push()).code).toBe(0);
    const nothingNew = await copy.push();
    expect(nothingNew.code).toBe(0);
    expect(nothingNew.output).toContain('paas builds:create -a repeated');
    const build = await user.api<BuildAnswer>('POST', '/v1/apps/repeated/builds', {});
    expect(build.cache_state).toBe('Warm');
    await expect
      .poll(async () => (await user.api<ReleaseAnswer[]>('GET', '/v1/apps/repeated/releases'))[0], { timeout: 20_000 })
      .toMatchObject({ version: 2 });
  });

  it('tells the owner of a shallow clone how to get the rest', async () => {
    const app = await user.createApp('shallow');
    const copy = await user.createWorkingCopy((await user.createApp('deep')).push_url, nodeApp('deep'));
    await copy.commit({ 'more.txt': 'more' });
    await user.git(user.home, ['clone', '-q', '--depth', '1', `file://${copy.directory}`, 'shallow-clone']);
    const pushed = await user.git(`${user.home}/shallow-clone`, ['push', app.push_url, 'main']);
    expect(pushed.code).toBe(1);
    expect(pushed.output).toContain('git fetch --unshallow');
  });

  it('runs the release command first, and does not roll out when it fails', async () => {
    const app = await user.createApp('migrated');
    const copy = await user.createWorkingCopy(app.push_url, {
      ...nodeApp('v1'),
      Procfile: 'web: node server.js\nrelease: echo migrating $RELEASE_WORD\n',
    });
    await user.api('PATCH', '/v1/apps/migrated/config', { RELEASE_WORD: 'the-tables' });
    const first = await copy.push();
    expect(first.output).toContain('migrating the-tables');
    expect(first.code).toBe(0);
    await copy.commit({ ...nodeApp('v2'), Procfile: 'web: node server.js\nrelease: false\n' });
    const second = await copy.push();
    expect(second.output).toContain('The release command exited with 1');
    expect(second.output).toContain('! [remote rejected] main -> main (release command failed)');
    expect(second.code).toBe(1);
    expect((await visit(platform, 'migrated')).body).toBe('v1');
  });
});

async function untilBuilds(user: User, app: string, condition: (builds: BuildAnswer[]) => boolean): Promise<void> {
  await expect
    .poll(async () => condition(await user.api<BuildAnswer[]>('GET', `/v1/apps/${app}/builds`)), { timeout: 20_000 })
    .toBe(true);
}
