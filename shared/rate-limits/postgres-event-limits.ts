import { CompiledQuery } from 'kysely';
import { RateLimiterMemory, RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible';
import type { Db } from '#shared/database/db.ts';
import type { EventLimits } from '#shared/rate-limits/event-limits.ts';
import type { RateLimitPolicy, RateLimitVerdict } from '#shared/rate-limits/rate-limits.ts';
import { createRefusals, type Refusals } from '#shared/rate-limits/refusals.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** Written by rate-limiter-flexible. `expire` is in milliseconds since the epoch; `key` is `<policy>:<key>`. */
    event_limits: { key: string; points: number; expire: number | null };
  }
}

/**
 * Limits of events that all processes on the database share, counted by rate-limiter-flexible. A key without events left is refused
 * from memory until its window ends. While the database cannot be reached, each process counts by itself.
 * @param refusals the memory, which limits on several connections can share
 */
export function createPostgresEventLimits(db: Db, refusals: Refusals = createRefusals(Date.now)): EventLimits {
  const limiters = new Map<string, RateLimiterPostgres>();
  const limiterOf = (policy: RateLimitPolicy): RateLimiterPostgres => {
    const known = limiters.get(policy.name);
    if (known !== undefined) return known;
    const made = createLimiter(db, policy);
    limiters.set(policy.name, made);
    return made;
  };
  return {
    async take(policy, key) {
      const verdict = await consume(limiterOf(policy), key);
      if (verdict.remaining === 0) refusals.remember(`${policy.name}:${key}`, verdict.resetMilliseconds);
      return verdict;
    },
    async giveBack(policy, key) {
      await limiterOf(policy).reward(key);
      refusals.remember(`${policy.name}:${key}`, 0);
    },
    refusedMilliseconds: ({ name }, key) => refusals.remaining(`${name}:${key}`),
    async sweep() {
      const result = await db.deleteFrom('event_limits').where('expire', '<', Date.now()).executeTakeFirst();
      return Number(result.numDeletedRows);
    },
  };
}

function createLimiter(db: Db, { name, limit, windowSeconds }: RateLimitPolicy): RateLimiterPostgres {
  const window = { keyPrefix: name, points: limit, duration: windowSeconds };
  return new RateLimiterPostgres({
    ...window,
    inMemoryBlockOnConsumed: limit + 1,
    insuranceLimiter: new RateLimiterMemory(window),
    storeClient: { query: (query: { text: string; values: unknown[] }) => runQuery(db, query) },
    storeType: 'pool',
    tableName: 'event_limits',
    tableCreated: true,
    clearExpiredByTimeout: false,
  });
}

/** What the library asks of a pool of pg. */
async function runQuery(db: Db, { text, values }: { text: string; values: unknown[] }) {
  const { rows, numAffectedRows } = await db.executeQuery(CompiledQuery.raw(text, values));
  return { rows, rowCount: Number(numAffectedRows ?? rows.length) };
}

/** The library rejects with its result where an event is refused. */
async function consume(limiter: RateLimiterPostgres, key: string): Promise<RateLimitVerdict> {
  try {
    return { granted: true, ...toVerdict(await limiter.consume(key)) };
  } catch (refused) {
    if (!(refused instanceof RateLimiterRes)) throw refused;
    return { granted: false, ...toVerdict(refused) };
  }
}

function toVerdict({ remainingPoints, msBeforeNext }: RateLimiterRes): Omit<RateLimitVerdict, 'granted'> {
  return { remaining: remainingPoints, resetMilliseconds: msBeforeNext };
}
