import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { kinds } from '#shared/platform/kubernetes/cluster/kinds.ts';
import { nodeApp } from '#test/support/builds/sample-apps.ts';
import { createUser, type User, visit, type WorkingCopy } from '#test/support/platform/user.ts';
import { type ClusterPlatform, startClusterPlatform } from './start-platform.ts';

describe('a platform on a cluster', { timeout: 600_000 }, () => {
  let platform: ClusterPlatform;
  let user: User;
  beforeAll(async () => {
    platform = await startClusterPlatform(inject('clusterPrograms'));
    user = await createUser(platform);
  }, 600_000);
  afterAll(async () => {
    await user?.remove();
    await platform?.stop();
  }, 120_000);
  let name: string;
  let appId: string;
  let copy: WorkingCopy;
  beforeEach(async () => {
    name = `app-${crypto.randomUUID().slice(0, 8)}`;
    const app = await user.createApp(name);
    appId = app.id;
    copy = await user.createWorkingCopy(app.push_url, nodeApp('first'));
  });
  afterEach(({ task }) => {
    if (task.result?.state === 'fail') process.stderr.write(`${platform.output()}\n`);
  });

  it('a push over SSH is built by a pipeline, rolled out, and answered by a pod through the gateway', async () => {
    const pushed = await copy.push();
    expect(pushed.output).toContain('remote: -----> Building');
    expect(pushed.output).toMatch(/remote: \s+http:\/\/\S+ deployed/);
    expect(pushed.code).toBe(0);
    expect(await visit(platform, name)).toEqual({ status: 200, body: 'first' });
  });

  it('a second push after the cache was flushed is live, and a rollback brings the first back', async () => {
    expect((await copy.push()).output).toContain('The cache of this machine is Cold.');
    expect(await user.api('DELETE', `/v1/apps/${name}/build_cache/flush`)).toMatchObject({ flushed: true });
    await copy.commit(nodeApp('second'));
    const pushed = await copy.push();
    expect(pushed.code, pushed.output).toBe(0);
    expect(await visit(platform, name)).toEqual({ status: 200, body: 'second' });
    await user.api('POST', `/v1/apps/${name}/deploys/v1/rollback`);
    await expect.poll(async () => (await visit(platform, name)).body).toBe('first');
  });

  it('nothing of an app that is purged is left on the cluster', async () => {
    const pushed = await copy.push();
    expect(pushed.code, pushed.output).toBe(0);
    const left = async (): Promise<string[]> => {
      const listed = Object.values(kinds).map((kind) => platform.cluster.list({ kind, labels: { 'app-id': appId } }));
      return (await Promise.all(listed)).flat().map((object) => `${object.kind} ${object.metadata.name}`);
    };
    expect(await left()).toEqual(expect.arrayContaining([`Rollout app-${appId}`, `HTTPRoute app-${appId}`]));
    await user.api('DELETE', `/v1/apps/${name}?purge=true`);
    await expect.poll(left).toEqual([]);
    expect((await visit(platform, name)).status).toBe(404);
  });
});
