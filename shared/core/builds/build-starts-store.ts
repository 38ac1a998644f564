import { type Generated, sql } from 'kysely';
import type { Db } from '#shared/database/db.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** Added to by each build start; the counter is the sum of `count`. Outlives the builds and their apps. */
    build_starts: { cache_state: 'cold' | 'warm'; pipeline: string; count: Generated<number> };
  }
}

export interface BuildStartCount {
  cacheState: 'cold' | 'warm';
  pipeline: string;
  count: number;
}

/** Counts a build start in the transaction that makes it: both are there, or neither is. */
export async function addBuildStart(trx: Db, start: Omit<BuildStartCount, 'count'>): Promise<void> {
  await trx.insertInto('build_starts').values({ cache_state: start.cacheState, pipeline: start.pipeline }).execute();
}

/** Build starts since the platform was first started, whichever process started them. */
export async function countBuildStarts(db: Db): Promise<BuildStartCount[]> {
  const rows = await db
    .selectFrom('build_starts')
    .select(['cache_state', 'pipeline', (start) => start.fn.sum<string>('count').as('total')])
    .groupBy(['cache_state', 'pipeline'])
    .execute();
  return rows.map((row) => ({ cacheState: row.cache_state, pipeline: row.pipeline, count: Number(row.total) }));
}

/** Sums the rows up, in one statement: who counts meanwhile sees all of the old ones or the new ones. */
export async function foldBuildStarts(db: Db): Promise<void> {
  await sql`
    with folded as (delete from build_starts returning cache_state, pipeline, count)
    insert into build_starts (cache_state, pipeline, count)
    select cache_state, pipeline, sum(count) from folded group by cache_state, pipeline`.execute(db);
}
