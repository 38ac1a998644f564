import { expect, it } from 'vitest';
import type { AppId } from '#shared/ids.ts';
import { createCoreFixture } from '#test/support/core/core-fixture.ts';

it('release commands of one tenant that never end delay no deploy of another, and are ended', { timeout: 120_000 }, async () => {
  const core = await createCoreFixture({ workerSlots: { releases: 2 } });
  try {
    const [greedy, honest] = [await core.signUp(), await core.signUp()];
    const running = new Set<string>();
    let mostRunning = 0;
    core.script = {
      run: (command, _line, signal) => {
        if (command !== 'sleep') return Promise.resolve(0);
        return new Promise((_resolve, reject) => {
          const name = crypto.randomUUID();
          running.add(name);
          mostRunning = Math.max(mostRunning, running.size);
          const end = (): void => {
            running.delete(name);
            reject(signal.reason as Error);
          };
          signal.addEventListener('abort', end, { once: true });
        });
      },
    };
    const greedyApps: AppId[] = [];
    for (let index = 0; index < 4; index += 1) {
      const app = await core.createApp(greedy);
      await app.commit({ Procfile: 'web: serve\nrelease: sleep\n' });
      await app.push('-o', 'detach', 'main');
      greedyApps.push(app.id);
    }
    core.context.settings.releaseCommandSeconds = 10;
    await core.startWorker();
    await expect.poll(() => running.size, { timeout: 30_000 }).toBe(1);
    for (const Procfile of ['web: serve\nrelease: migrate\n', 'web: serve\n']) {
      const app = await core.createApp(honest);
      await app.commit({ Procfile });
      expect((await app.push('main')).code).toBe(0);
    }
    // They still run, one at a time: half of the slots.
    await expect.poll(() => running.size).toBe(1);
    expect(mostRunning).toBe(1);
    core.context.settings.releaseCommandSeconds = 1;
    const readFailed = async () => {
      const deploys = await core.context.db.selectFrom('deploys').select('error').where('app_id', 'in', greedyApps).execute();
      return deploys.filter(({ error }) => error?.startsWith('The release command took longer than')).length;
    };
    await expect.poll(readFailed, { timeout: 60_000 }).toBe(4);
    expect(running.size).toBe(0);
  } finally {
    await core.close();
  }
});
