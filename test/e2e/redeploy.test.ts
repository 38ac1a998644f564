import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nodeApp } from '#test/support/builds/sample-apps.ts';
import { holdLoad } from '#test/support/platform/load.ts';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser, type User, type WorkingCopy } from '#test/support/platform/user.ts';

interface DeployAnswer {
  status: string;
  steps: { weight: number }[];
}

describe('under load', () => {
  let platform: RunningPlatform;
  let user: User;
  let copy: WorkingCopy;
  beforeAll(async () => {
    platform = await startPlatform();
    user = await createUser(platform);
    const app = await user.createApp('steady');
    copy = await user.createWorkingCopy(app.push_url, nodeApp('one'));
    expect((await copy.push()).code).toBe(0);
  });
  afterAll(async () => {
    await user.remove();
    await removePlatform(platform);
  });

  /** Runs `change` under load, with some more before and after it. */
  async function underLoad(change: () => Promise<unknown>) {
    const load = holdLoad(platform, 'steady');
    await expect.poll(() => load.count(), { timeout: 30_000 }).toBeGreaterThan(100);
    await change();
    const after = load.count();
    await expect.poll(() => load.count(), { timeout: 30_000 }).toBeGreaterThan(after + 100);
    return load.stop();
  }

  async function untilLive(): Promise<DeployAnswer> {
    const newest = async () => (await user.api<DeployAnswer[]>('GET', '/v1/apps/steady/deploys'))[0];
    await expect.poll(async () => (await newest())?.status, { timeout: 60_000 }).toBe('live');
    return (await newest()) as DeployAnswer;
  }

  it('a redeploy loses no request, and goes through 10, 25, 50 and 100 percent', async () => {
    await copy.commit(nodeApp('two'));
    const { outcomes, bodies } = await underLoad(async () => expect((await copy.push()).code).toBe(0));
    expect(Object.keys(outcomes)).toEqual(['200']);
    expect(Object.keys(bodies).toSorted()).toEqual(['one', 'two']);
    expect((await untilLive()).steps.map((step) => step.weight)).toEqual(expect.arrayContaining([10, 25, 50, 100]));
  });

  it('a rollback loses no request', async () => {
    const { outcomes, bodies } = await underLoad(async () => {
      await user.api('POST', '/v1/apps/steady/deploys/v1/rollback');
      await untilLive();
    });
    expect(Object.keys(outcomes)).toEqual(['200']);
    expect(Object.keys(bodies).toSorted()).toEqual(['one', 'two']);
  });

  it('a restart loses no request, and replaces the instance', async () => {
    const started = async () => {
      const [web] = await user.api<{ instances: { started_at: string }[] }[]>('GET', '/v1/apps/steady/processes');
      return web?.instances.map((instance) => instance.started_at);
    };
    const before = await started();
    const { outcomes } = await underLoad(async () => {
      await user.api('POST', '/v1/apps/steady/restart');
      await expect.poll(async () => (await started())?.some((time) => before?.includes(time)), { timeout: 60_000 }).toBe(false);
    });
    expect(Object.keys(outcomes)).toEqual(['200']);
  });

  it('scaling up and down loses no request', async () => {
    const instances = async () => {
      const [web] = await user.api<{ instances: { state: string }[] }[]>('GET', '/v1/apps/steady/processes');
      return web?.instances.filter((instance) => instance.state === 'up').length;
    };
    const { outcomes } = await underLoad(async () => {
      await user.api('PATCH', '/v1/apps/steady/processes/web', { quantity: 3 });
      await expect.poll(instances, { timeout: 60_000 }).toBe(3);
      await user.api('PATCH', '/v1/apps/steady/processes/web', { quantity: 1 });
      await expect.poll(instances, { timeout: 60_000 }).toBe(1);
    });
    expect(Object.keys(outcomes)).toEqual(['200']);
  });
});
