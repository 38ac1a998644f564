/**
 * A process of its own that takes calls on a database's limits: `node limited-process.ts <database URL>`. Each message
 * `{ policy, key, calls }` is so many calls at once, answered by the number that was granted.
 */
import { connectPostgres } from '#shared/database/postgres.ts';
import { createPostgresRateLimits } from '#shared/rate-limits/postgres-rate-limits.ts';
import type { RateLimitPolicy } from '#shared/rate-limits/rate-limits.ts';

export interface Burst {
  policy: RateLimitPolicy;
  key: string;
  calls: number;
}

const { db, close } = connectPostgres(process.argv[2] ?? '', () => undefined, 4);
const limits = createPostgresRateLimits(db);

process.on('message', (burst) => void takeAll(burst as Burst));
process.on('disconnect', () => void close());
process.send?.('ready');

async function takeAll({ policy, key, calls }: Burst): Promise<void> {
  const verdicts = await Promise.all(Array.from({ length: calls }, () => limits.take(policy, key)));
  process.send?.(verdicts.filter(({ granted }) => granted).length);
}
