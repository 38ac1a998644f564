import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nodeApp, slowApp } from '#test/support/builds/sample-apps.ts';
import { holdLoad } from '#test/support/platform/load.ts';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser, type User, visit, type WorkingCopy } from '#test/support/platform/user.ts';

interface BuildAnswer {
  id: string;
  status: string;
  commit: string;
}
interface DeployAnswer {
  status: string;
}

/** The platform's promise: this long after the next start all unfinished work is finished or has failed cleanly. */
const resumeMilliseconds = 30_000;

/** On one platform, which each test kills and starts again. */
describe('kill -9 of the control plane', () => {
  let platform: RunningPlatform;
  let user: User;
  let copy: WorkingCopy;
  beforeAll(async () => {
    platform = await startPlatform();
    user = await createUser(platform);
    const app = await user.createApp('survivor');
    copy = await user.createWorkingCopy(app.push_url, nodeApp('before'));
    expect((await copy.push()).code).toBe(0);
  });
  afterAll(async () => {
    await user.remove();
    await removePlatform(platform);
  });

  async function startAgain(): Promise<void> {
    const { dataDir, httpPort, httpsPort, sshPort } = platform;
    platform = await startPlatform({ dataDir, ports: { http: httpPort, https: httpsPort, ssh: sshPort } });
  }

  async function builds(): Promise<BuildAnswer[]> {
    return user.api<BuildAnswer[]>('GET', '/v1/apps/survivor/builds');
  }

  /** No build and no deploy is left open, and main is what serves. */
  async function expectSettled(word: string): Promise<void> {
    const open = async (): Promise<number> => {
      // Builds first: the end of a build makes a deploy, which would be missed the other way round.
      const openBuilds = (await builds()).filter((build) => ['queued', 'running'].includes(build.status));
      const deploys = await user.api<DeployAnswer[]>('GET', '/v1/apps/survivor/deploys');
      return openBuilds.length + deploys.filter((deploy) => ['pending', 'rolling'].includes(deploy.status)).length;
    };
    await expect.poll(open, { timeout: resumeMilliseconds }).toBe(0);
    expect(await visit(platform, 'survivor')).toEqual({ status: 200, body: word });
    const cloned = await user.git(user.home, [
      'clone',
      '-q',
      (await copy.git('remote', 'get-url', 'paas')).stdout.trim(),
      `clone-${Date.now()}`,
    ]);
    expect(cloned.code).toBe(0);
  }

  it('costs the apps that are live not one request', async () => {
    const load = holdLoad(platform, 'survivor');
    await expect.poll(() => load.count(), { timeout: 30_000 }).toBeGreaterThan(100);
    await platform.kill();
    const atKill = load.count();
    await expect.poll(() => load.count(), { timeout: 30_000 }).toBeGreaterThan(atKill + 200);
    await startAgain();
    const atStart = load.count();
    await expect.poll(() => load.count(), { timeout: 30_000 }).toBeGreaterThan(atStart + 200);
    expect(Object.keys((await load.stop()).outcomes)).toEqual(['200']);
    const [web] = await user.api<{ instances: { restarts: number }[] }[]>('GET', '/v1/apps/survivor/processes');
    expect(web?.instances.map((instance) => instance.restarts)).toEqual([0]);
  });

  it('during a build: the build is finished after the next start, and its ref moves', async () => {
    const tip = await copy.commit(slowApp('after', 3));
    const pushing = user.git(copy.directory, ['push', 'paas', 'main'], {
      onOutput: (text) => void (text.includes('building slowly') && platform.kill()),
    });
    expect((await pushing).code).not.toBe(0);
    await startAgain();
    await expect.poll(async () => (await builds())[0]?.status, { timeout: resumeMilliseconds }).toBe('succeeded');
    await expectSettled('after');
    expect((await builds()).filter((build) => build.commit === tip)).toHaveLength(1);
    expect((await copy.git('ls-remote', 'paas', 'refs/heads/main')).stdout).toContain(tip);
  });

  it('during a rollout: the rollout is finished after the next start, and the ref moves', async () => {
    const tip = await copy.commit(nodeApp('rolled out'));
    const load = holdLoad(platform, 'survivor');
    const pushing = user.git(copy.directory, ['push', 'paas', 'main'], {
      onOutput: (text) => void (text.includes('Starting v') && platform.kill()),
    });
    await pushing;
    await startAgain();
    await expectSettled('rolled out');
    expect((await copy.git('ls-remote', 'paas', 'refs/heads/main')).stdout).toContain(tip);
    expect(Object.keys((await load.stop()).outcomes)).toEqual(['200']);
  });

  it('at any moment of a push: the push has no effect at all, or it is completed', async () => {
    for (const milliseconds of [100, 400]) {
      const before = (await copy.git('ls-remote', 'paas', 'refs/heads/main')).stdout.slice(0, 40);
      const known = (await builds()).length;
      const word = `after ${milliseconds}`;
      const tip = await copy.commit(nodeApp(word));
      const pushing = copy.push();
      await new Promise((resolve) => setTimeout(resolve, milliseconds));
      await platform.kill();
      const acknowledged = (await pushing).code === 0;
      await startAgain();
      const now = await builds();
      const arrived = now.length > known;
      expect(arrived || !acknowledged).toBe(true);
      if (arrived) {
        await expectSettled(word);
        expect((await copy.git('ls-remote', 'paas', 'refs/heads/main')).stdout).toContain(tip);
      } else {
        expect((await copy.git('ls-remote', 'paas', 'refs/heads/main')).stdout).toContain(before);
        expect((await copy.push()).code).toBe(0);
      }
    }
  });
});
