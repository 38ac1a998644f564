import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addBuildStart, countBuildStarts, foldBuildStarts } from '#shared/core/builds/build-starts-store.ts';
import { connectPostgres } from '#shared/database/postgres.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/database/test-database.ts';

describe('build starts', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.close());

  const counted = async () =>
    Object.fromEntries((await countBuildStarts(database.db)).map((row) => [`${row.cacheState} ${row.pipeline}`, row.count]));

  it('are counted exactly while several processes start builds, roll some back, and sum the rows up', async () => {
    const other = connectPostgres(database.url, () => undefined, 5);
    let running = true;
    const folding = (async () => {
      let folds = 0;
      while (running) {
        await Promise.all([foldBuildStarts(database.db), foldBuildStarts(other.db)]);
        folds += 1;
      }
      return folds;
    })();
    const start = (index: number): Promise<void> =>
      (index % 2 === 0 ? database.db : other.db).transaction().execute(async (trx) => {
        await addBuildStart(trx, { cacheState: index % 3 === 0 ? 'cold' : 'warm', pipeline: 'local' });
        if (index % 5 === 0) throw new Error('rolled back');
      });
    const outcomes = await Promise.allSettled(Array.from({ length: 300 }, (_, index) => start(index)));
    running = false;
    expect(await folding).toBeGreaterThan(1);
    await other.close();
    expect(outcomes.filter((outcome) => outcome.status === 'rejected')).toHaveLength(60);
    // Of 0…299: 100 are cold, of which 20 were rolled back; 200 are warm, of which 40 were.
    expect(await counted()).toEqual({ 'cold local': 80, 'warm local': 160 });
  });

  it('do not block two transactions that count a cold and a warm one each, in opposite order', async () => {
    const before = await counted();
    const first = Promise.withResolvers<void>();
    const second = Promise.withResolvers<void>();
    const both = (one: 'cold' | 'warm', other: 'cold' | 'warm', mine: () => void, theirs: Promise<void>) =>
      database.db.transaction().execute(async (trx) => {
        await addBuildStart(trx, { cacheState: one, pipeline: 'local' });
        mine();
        await theirs;
        await addBuildStart(trx, { cacheState: other, pipeline: 'local' });
      });
    await Promise.all([both('cold', 'warm', first.resolve, second.promise), both('warm', 'cold', second.resolve, first.promise)]);
    const after = await counted();
    expect(after['cold local']).toBe((before['cold local'] ?? 0) + 2);
    expect(after['warm local']).toBe((before['warm local'] ?? 0) + 2);
  });

  it('are one row a series after they were summed up', async () => {
    await foldBuildStarts(database.db);
    const { rows } = await database.pool.query('select * from build_starts');
    expect(rows).toHaveLength(2);
  });
});
