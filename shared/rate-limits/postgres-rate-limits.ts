import { type RawBuilder, sql } from 'kysely';
import type { Db } from '#shared/database/schema.ts';
import type { RateLimits } from '#shared/rate-limits/rate-limits.ts';
import { createSlidingLogLimits, type SlidingLog } from '#shared/rate-limits/sliding-log-limits.ts';

/**
 * Limits that hold over all processes of a database, exact to the call.
 * @param now milliseconds since the epoch, for tests; by default the database's clock, which all processes share
 */
export function createPostgresRateLimits(db: Db, now?: () => number): RateLimits {
  return createSlidingLogLimits(createPostgresLog(db, now), now ?? Date.now);
}

/** Read after the row's lock was got, so that times in a row never run backwards by waiting. */
const databaseTime = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`;

/**
 * A row a key, with the times of its calls in order: what is older than the window is cut off by binary search
 * (`width_bucket` counts the calls up to a time), and a refused call finds no row to change and writes nothing.
 */
function createPostgresLog(db: Db, now: (() => number) | undefined): SlidingLog {
  const time = (): RawBuilder<number> => (now === undefined ? databaseTime : sql<number>`${now()}::bigint`);
  return {
    async hit(key, limit, window) {
      const at = time();
      const expired = sql<number>`width_bucket(${at} - ${window}::bigint, kept.hits)`;
      const granted = await sql<{ count: number; reset: number }>`
        insert into rate_limits as kept (key, hits) values (${key}, array[${at}])
        on conflict (key) do update
          set hits = kept.hits[${expired} + 1:] || greatest(${at}, kept.hits[cardinality(kept.hits)]), updated_at = now()
          where cardinality(kept.hits) - ${expired} < ${limit}
        returning cardinality(hits) as count, hits[1] + ${window}::bigint - ${at} as reset`.execute(db);
      const [row] = granted.rows;
      if (row !== undefined) return { granted: true, count: row.count, resetMilliseconds: Math.max(0, row.reset) };

      const refused = await sql<{ reset: number | null }>`
        select hits[cardinality(hits) - ${limit}::int + 1] + ${window}::bigint - ${at} as reset
        from rate_limits where key = ${key}`.execute(db);
      return { granted: false, count: limit, resetMilliseconds: Math.max(0, refused.rows[0]?.reset ?? 0) };
    },

    async sweep() {
      const result = await db
        .deleteFrom('rate_limits')
        .where('updated_at', '<', sql<Date>`now() - interval '1 hour'`)
        .executeTakeFirst();
      return Number(result.numDeletedRows);
    },
  };
}
