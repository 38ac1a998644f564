import type { KyselyPlugin } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { followBuildLog } from '#shared/core/builds/build-log.ts';
import type { Context } from '#shared/core/context.ts';
import { watchForEnd } from '#shared/core/watch.ts';
import { createWakeups } from '#shared/wakeups/wakeups.ts';
import { type CoreFixture, createCoreFixture } from '#test/support/core/core-fixture.ts';

const never = new AbortController().signal;

/** Wakeups whose waits end by a wakeup only. */
function withoutPolling() {
  const wakeups = createWakeups();
  return { ...wakeups, wait: (key: string, _milliseconds: number, signal?: AbortSignal) => wakeups.wait(key, 1 << 30, signal) };
}

describe('following a build log', () => {
  let core: CoreFixture;
  let owner: Principal;
  beforeAll(async () => {
    core = await createCoreFixture();
    owner = await core.signUp();
  });
  afterAll(() => core.close());

  it('ends without waiting for a poll when the build ends while its rows are read', async () => {
    const app = await core.createApp(owner);
    await app.commit();
    await app.push('-o', 'detach', 'main');
    const build = await core.latestBuild(app.id);
    const context: Context = { ...core.context, wakeups: withoutPolling() };
    let queries = 0;
    const endBuildAfterFirstLook: KyselyPlugin = {
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        queries += 1;
        if (queries === 1) {
          await core.context.db.updateTable('builds').set({ status: 'canceled' }).where('id', '=', build.id).execute();
          context.wakeups.wake(`build:${build.id}`);
        }
        return result;
      },
    };
    const db = core.context.db.withPlugin(endBuildAfterFirstLook);
    const lines = await Array.fromAsync(followBuildLog({ ...context, db }, build.id, 0, never));
    expect(lines).toEqual([]);
    expect(queries).toBeGreaterThan(1);
  });
});

it('a watch notices without a poll what comes while it looks', async () => {
  const wakeups = withoutPolling();
  const reason = new Error('The app was deleted.');
  let looks = 0;
  const findReason = async (): Promise<Error | undefined> => {
    looks += 1;
    if (looks > 1) return reason;
    wakeups.wake('key');
    return undefined;
  };
  const { signal } = watchForEnd({ wakeups } as unknown as Context, { key: 'key', milliseconds: 1, findReason }, never);
  await expect.poll(() => signal.reason as unknown).toBe(reason);
});
