import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BuildLogLine } from '#shared/core/builds/builds.ts';
import { createBuilds } from '#shared/core/builds/builds-service.ts';
import type { Context } from '#shared/core/context.ts';
import { buildLogKey } from '#shared/core/telemetry/build-log-writer.ts';
import { appendBuildLog } from '#shared/core/telemetry/build-logs-store.ts';
import type { BuildId } from '#shared/ids.ts';
import { seedBuild } from '#test/support/api/seeds.ts';
import { createTestApi, type TestApi, type TestUser } from '#test/support/api/test-api.ts';

let test: TestApi;
let ada: TestUser;
let app: { id: string };
beforeAll(async () => {
  test = await createTestApi();
  ada = await test.signUp();
  app = await test.createApp(ada);
});
afterAll(() => test?.close());

const caller = () => ({ userId: ada.id as never, email: ada.email });

/** A running build, and a core that counts its statements. */
async function startFollowed() {
  const { id } = await seedBuild(test, ada, app.id as never);
  const buildId = id as BuildId;
  await test.context.db.updateTable('builds').set({ status: 'running' }).where('id', '=', buildId).execute();
  let statements = 0;
  let failing = false;
  const db = test.context.db.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      statements += 1;
      if (failing) throw new Error('the database is away');
      return result;
    },
  });
  const context: Context = { ...test.context, db };
  const builds = createBuilds(context);
  const append = async (...lines: string[]): Promise<void> => {
    const batch = { buildId, again: false, fence: undefined, lines: lines.map((line) => ({ ts: new Date(), line })) };
    await appendBuildLog(test.context.db, batch);
    context.wakeups.wake(buildLogKey(buildId));
  };
  const finish = async (): Promise<void> => {
    await test.context.db.updateTable('builds').set({ status: 'failed' }).where('id', '=', buildId).execute();
    context.wakeups.wake(buildLogKey(buildId));
  };
  const follow = async (signal: AbortSignal, afterSeq = 0): Promise<AsyncIterable<BuildLogLine>> =>
    builds.followBuildLog(caller(), app.id, buildId, { afterSeq }, signal);
  return {
    append,
    finish,
    follow,
    statements: () => statements,
    fail: () => {
      failing = true;
    },
  };
}

async function collect(lines: AsyncIterable<BuildLogLine>, into: string[] = []): Promise<string[]> {
  for await (const { line } of lines) into.push(line);
  return into;
}

describe('following the log of a build', () => {
  it('costs the statements of one reader, however many there are, and each gets every line once and in order', async () => {
    const build = await startFollowed();
    await build.append('one', 'two');
    const readers = await Promise.all(Array.from({ length: 50 }, () => build.follow(new AbortController().signal)));
    const seen = readers.map(() => [] as string[]);
    const done = Promise.all(readers.map((lines, index) => collect(lines, seen[index])));
    await expect.poll(() => seen.every((lines) => lines.length === 2)).toBe(true);
    const before = build.statements();
    await build.append('three');
    await expect.poll(() => seen.every((lines) => lines.length === 3)).toBe(true);
    expect(build.statements() - before).toBeLessThan(20);
    await build.append('four');
    await build.finish();
    for (const lines of await done) expect(lines).toEqual(['one', 'two', 'three', 'four']);
  });

  it('gives a reader who comes late, or resumes, all lines after theirs, also more than are kept in memory', async () => {
    const build = await startFollowed();
    const all = Array.from({ length: 2500 }, (_, index) => `line ${index + 1}`);
    await build.append(...all.slice(0, 1200));
    const resumed = collect(await build.follow(new AbortController().signal, 1190));
    await build.append(...all.slice(1200));
    const late = collect(await build.follow(new AbortController().signal));
    await build.finish();
    expect(await resumed).toEqual(all.slice(1190));
    expect(await late).toEqual(all);
  });

  it('stops asking when the last reader has left', async () => {
    const build = await startFollowed();
    const leave = new AbortController();
    const readers = [collect(await build.follow(leave.signal)), collect(await build.follow(leave.signal))];
    await build.append('one');
    leave.abort();
    await Promise.all(readers);
    await build.append('two');
    const again = collect(await build.follow(new AbortController().signal));
    await build.finish();
    expect(await again).toEqual(['one', 'two']);
  });

  it('fails for its readers when the database fails, and can be begun again', async () => {
    const build = await startFollowed();
    const other = await startFollowed();
    const reader = collect(await build.follow(new AbortController().signal));
    reader.catch(() => undefined);
    build.fail();
    await build.append('one');
    await expect(reader).rejects.toThrow('the database is away');
    const fine = collect(await other.follow(new AbortController().signal));
    await other.finish();
    expect(await fine).toEqual([]);
  });
});
