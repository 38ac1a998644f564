import { sql } from 'kysely';
import type { Db, UpdatedAt } from '#shared/database/db.ts';
import { prepare } from '#shared/database/prepared.ts';
import { gatherHits, type Hit, type WaitingHits } from '#shared/rate-limits/gathered-hits.ts';
import type { RateLimits } from '#shared/rate-limits/rate-limits.ts';
import { createRefusals, type Refusals } from '#shared/rate-limits/refusals.ts';
import { createSlidingLogLimits, type SlidingLog, type SlidingLogFacts } from '#shared/rate-limits/sliding-log-limits.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** A sliding log of hits: one row for each limited key, newest hits in milliseconds since the epoch. */
    rate_limits: { key: string; hits: number[]; updated_at: UpdatedAt };
  }
}

/**
 * Rate limits shared by all processes that use the database, exact to the call.
 * @param now current time in milliseconds since the epoch, for tests; default: the clock of the database, which all processes share
 * @param refusals a memory of refused keys, which limits on several connections can share
 */
export function createPostgresRateLimits(
  db: Db,
  now?: () => number,
  refusals: Refusals = createRefusals(now ?? Date.now),
): RateLimits {
  return createSlidingLogLimits(createPostgresLog(db, now), refusals);
}

const databaseTime = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`;

interface Window {
  /** Milliseconds since the epoch. Null: the clock of the database, read once per statement. */
  at: number | null;
  limit: number;
  milliseconds: number;
}

/**
 * One row per key holds the times of its calls, in order. Calls older than the window are removed by binary search
 * (`width_bucket` counts the calls up to a time). The calls of a key are added together or not at all: if they exceed the
 * limit, the row is not updated and not returned. Rows are locked in the order of their keys, so that two processes cannot
 * deadlock. A statement that waited for a row never writes a time earlier than the last one in it.
 */
const addHits = prepare<Window & { keys: string[]; counts: number[] }, { key: string; count: number; reset: number }>(
  'add-hits',
  (db, value) => {
    const kept = sql`width_bucket(excluded.hits[1] - ${value('milliseconds')}::bigint, kept.hits)`;
    return sql<{ key: string; count: number; reset: number }>`
      with clock as materialized (select coalesce(${value('at')}::bigint, ${databaseTime}) as at)
      insert into rate_limits as kept (key, hits)
      select key, array_fill(at, array[count]) from unnest(${value('keys')}::text[], ${value('counts')}::int[]) as added (key, count), clock
        where count <= ${value('limit')}::int order by key
      on conflict (key) do update set
        hits = kept.hits[${kept} + 1:]
          || array_fill(greatest(excluded.hits[1], kept.hits[cardinality(kept.hits)]), array[cardinality(excluded.hits)]),
        updated_at = now()
        where cardinality(kept.hits) - ${kept} + cardinality(excluded.hits) <= ${value('limit')}::int
      returning key, cardinality(hits) as count, hits[1] + ${value('milliseconds')}::bigint - hits[cardinality(hits)] as reset`.compile(
      db,
    );
  },
);

function createPostgresLog(db: Db, now: (() => number) | undefined): SlidingLog {
  const gathered = new Map<string, (key: string) => Promise<SlidingLogFacts>>();
  return {
    hit(key, limit, milliseconds) {
      const name = `${limit} in ${milliseconds}`;
      const hit =
        gathered.get(name) ??
        gatherHits((hits) => writeHits(db, { at: now === undefined ? null : now(), limit, milliseconds }, hits));
      gathered.set(name, hit);
      return hit(key);
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

async function writeHits(db: Db, window: Window, hits: WaitingHits): Promise<void> {
  try {
    const rows = await addHits.execute(db, {
      ...window,
      keys: [...hits.keys()],
      counts: [...hits.values()].map((calls) => calls.length),
    });
    const added = new Map(rows.map((row) => [row.key, row]));
    for (const [key, calls] of hits) {
      const row = added.get(key);
      if (row === undefined) await writeLastHits(db, window, key, calls);
      else grant(calls, row);
    }
  } catch (error) {
    // Hits that are already settled ignore this.
    for (const calls of hits.values()) for (const call of calls) call.fail(error);
  }
}

/** Grants as many calls as fit, in order. After the first refused call all others are refused too. */
async function writeLastHits(db: Db, window: Window, key: string, calls: readonly Hit[]): Promise<void> {
  const refused = [...calls];
  while (calls.length > 1 && refused[0] !== undefined) {
    const [row] = await addHits.execute(db, { ...window, keys: [key], counts: [1] });
    if (row === undefined) break;
    grant([refused[0]], row);
    refused.shift();
  }
  if (refused.length === 0) return;
  const at = window.at === null ? databaseTime : sql<number>`${window.at}::bigint`;
  const oldest = await sql<{ reset: number | null }>`
    select hits[cardinality(hits) - ${window.limit}::int + 1] + ${window.milliseconds}::bigint - ${at} as reset
    from rate_limits where key = ${key}`.execute(db);
  const resetMilliseconds = Math.max(0, oldest.rows[0]?.reset ?? 0);
  for (const call of refused) call.settle({ granted: false, count: window.limit, resetMilliseconds });
}

function grant(calls: readonly Hit[], { count, reset }: { count: number; reset: number }): void {
  for (const [index, call] of calls.entries())
    call.settle({ granted: true, count: count - (calls.length - 1 - index), resetMilliseconds: Math.max(0, reset) });
}
