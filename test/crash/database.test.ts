import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findPostmaster } from '#shared/platform/local/postgres/postmaster.ts';
import { nodeApp } from '#test/support/builds/sample-apps.ts';
import { holdLoad } from '#test/support/platform/load.ts';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser, type User, visit, type WorkingCopy } from '#test/support/platform/user.ts';

const patience = { timeout: 60_000, interval: 100 };

describe('kill -9 of PostgreSQL under a platform', () => {
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
    await user?.remove();
    await removePlatform(platform);
  });

  const cluster = () => join(platform.dataDir, 'postgres', 'cluster');

  async function killDatabase(): Promise<void> {
    const postmaster = await findPostmaster(cluster());
    process.kill(postmaster?.pid ?? 0, 'SIGKILL');
  }

  interface Answer {
    status: number;
    retryAfter: string | null;
    code: string;
  }

  /** Sends requests one after the other until `stop` is called. */
  function keepAsking(): { answers: Answer[]; stop(): Promise<void> } {
    const answers: Answer[] = [];
    let stopping = false;
    const asking = (async () => {
      while (!stopping) {
        const response = await fetch(`${platform.baseUrl}/v1/apps/survivor`, {
          headers: { authorization: `Bearer ${user.token}` },
        });
        const body = (await response.json()) as { error?: { code: string } };
        answers.push({
          status: response.status,
          retryAfter: response.headers.get('retry-after'),
          code: body.error?.code ?? '',
        });
        await new Promise((resolve) => setTimeout(resolve, 150));
      }
    })();
    return {
      answers,
      async stop() {
        stopping = true;
        await asking;
      },
    };
  }

  it('is answered with 503 and a Retry-After, recovers by itself, and disturbs no app', async () => {
    const load = holdLoad(platform, 'survivor', 2);
    const asking = keepAsking();
    await expect.poll(() => asking.answers.at(-1)?.status, patience).toBe(200);
    await killDatabase();
    await expect.poll(() => asking.answers.at(-1)?.status, patience).not.toBe(200);
    await expect.poll(() => asking.answers.at(-1)?.status, patience).toBe(200);
    await asking.stop();
    const refused = asking.answers.filter(({ status }) => status !== 200);
    expect(new Set(refused.map(({ status, code }) => `${status} ${code}`))).toEqual(new Set(['503 internal']));
    expect(refused.every(({ retryAfter }) => Number(retryAfter) > 0)).toBe(true);
    expect(Object.keys((await load.stop()).outcomes)).toEqual(['200']);
  });

  it('in the middle of a push: nothing is lost or done twice; the push is refused or completed, and can be repeated', async () => {
    for (const moment of ['Node.js app detected', 'Starting v']) {
      const tip = await copy.commit(nodeApp(`after ${moment}`));
      const first = await user.git(copy.directory, ['push', 'paas', 'main'], {
        onOutput: (text) => void (text.includes(moment) && killDatabase()),
      });
      const main = async () => (await copy.git('ls-remote', 'paas', 'refs/heads/main')).stdout.slice(0, 40);
      if (first.code === 0) expect(await main()).toBe(tip);
      else {
        expect(first.output).toMatch(/remote rejected|hung up|disconnect/);
        await expect.poll(async () => (await copy.push()).code, { timeout: 120_000, interval: 500 }).toBe(0);
      }
      await expect.poll(main, patience).toBe(tip);
      const statuses = async (kind: 'builds' | 'deploys') =>
        (await user.api<{ status: string }[]>('GET', `/v1/apps/survivor/${kind}`)).map(({ status }) => status);
      const isOpen = (status: string) => ['queued', 'running', 'pending', 'rolling'].includes(status);
      await expect.poll(async () => (await statuses('builds')).filter(isOpen), patience).toEqual([]);
      await expect.poll(async () => (await statuses('deploys')).filter(isOpen), patience).toEqual([]);
      const [newest, ...older] = await statuses('deploys');
      expect(newest).toBe('live');
      expect(older.filter((status) => status !== 'superseded')).toEqual([]);
      expect((await visit(platform, 'survivor')).body).toBe(`after ${moment}`);
    }
  });
});
