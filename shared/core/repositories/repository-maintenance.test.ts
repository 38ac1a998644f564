import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createJobHandlers } from '#deploy/control-plane.ts';
import { PackBuilder } from '#shared/git/testing/pack-builder.ts';
import type { RepositoryId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';
import { type CoreFixture, createCoreFixture, type FixtureApp } from '#test/support/core/core-fixture.ts';

const running = new AbortController().signal;
const patience = { timeout: 60_000 };

describe('the repository of an app', () => {
  let core: CoreFixture;
  let app: FixtureApp;
  let repositoryId: RepositoryId;
  beforeEach(async () => {
    core = await createCoreFixture();
    app = await core.createApp(await core.signUp());
    const row = core.context.db.selectFrom('apps').select('repository_id').where('id', '=', app.id);
    repositoryId = (await row.executeTakeFirstOrThrow()).repository_id;
    await core.startWorker();
    await app.commit({ 'a.txt': 'one' });
  }, 60_000);
  afterEach(() => core.close());

  const packs = () =>
    core.context.db
      .selectFrom('git_packs')
      .select(['object_count', 'unreachable_since'])
      .where('repository_id', '=', repositoryId)
      .where('retired_at', 'is', null)
      .execute();

  async function jobTimes(): Promise<Map<string, Date>> {
    const found = await sql<{
      key: string;
      run_at: Date;
    }>`select key, run_at from graphile_worker.jobs where key is not null`.execute(core.context.db);
    return new Map(found.rows.map(({ key, run_at }) => [key, run_at]));
  }

  it('has its packs joined by the push that makes them many', async () => {
    for (let i = 1; i < limits.packs.joinFrom; i++) {
      const builder = new PackBuilder();
      builder.add('blob', `blob ${i}`);
      const bytes = builder.build();
      const pack = (async function* () {
        yield bytes;
      })();
      const staged = await core.context.git.stagePack(repositoryId, pack, running);
      await staged?.admit(core.context.db);
      await staged?.discard();
    }
    expect(await packs()).toHaveLength(limits.packs.joinFrom - 1);
    expect((await app.push('main')).code).toBe(0);
    await expect.poll(async () => (await packs()).length, patience).toBeLessThan(3);
  }, 120_000);

  it('keeps the commits of its releases, and parts those of builds that failed a day after its first push', async () => {
    const before = Date.now();
    expect((await app.push('main')).code).toBe(0);
    const time = (await jobTimes()).get(`collect-garbage:${repositoryId}`);
    expect(time?.getTime()).toBeGreaterThanOrEqual(before + limits.packs.collectSeconds * 1000);

    // Released, and then taken back by force.
    await app.commit({ 'a.txt': 'two' });
    expect((await app.push('main')).code).toBe(0);
    await app.git('reset', '-q', '--hard', 'HEAD~1');
    await app.commit({ 'a.txt': 'three' });
    expect((await app.push('--force', 'main')).code).toBe(0);
    core.buildStep = async () => 'It does not compile.';
    await app.commit({ 'a.txt': 'four' });
    expect((await app.push('main')).code).not.toBe(0);
    // The pushes since have not put it off.
    expect((await jobTimes()).get(`collect-garbage:${repositoryId}`)).toEqual(time);

    await createJobHandlers(core.context)['collect-garbage']({ repositoryId }, running);
    const unreachable = (await packs()).filter(({ unreachable_since }) => unreachable_since !== null);
    // A commit, its tree, its file.
    expect(unreachable.map(({ object_count }) => object_count)).toEqual([3]);
    const removal = (await jobTimes()).get(`remove-garbage:${repositoryId}`);
    expect(removal?.getTime()).toBeGreaterThan(before + limits.packs.unreachableSeconds * 1000);
  }, 120_000);
});
