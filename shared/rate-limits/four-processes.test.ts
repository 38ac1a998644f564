import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RateLimitPolicy, rateLimitPolicies } from '#shared/rate-limits/rate-limits.ts';
import type { Burst } from '#shared/rate-limits/testing/limited-process.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/database/test-database.ts';

let database: TestDatabase;
let processes: ChildProcess[] = [];
beforeAll(async () => {
  database = await createTestDatabase();
  processes = [1, 2, 3, 4].map(() => fork(join(import.meta.dirname, 'testing/limited-process.ts'), [database.url]));
  await Promise.all(processes.map((each) => once(each, 'message')));
});
afterAll(async () => {
  await Promise.all(
    processes.map(async (each) => {
      const ended = once(each, 'exit');
      each.disconnect();
      await ended;
    }),
  );
  await database?.close();
});

/** So many calls at once in each process; how many each was granted. */
function burst(policy: RateLimitPolicy, key: string, calls: readonly number[]): Promise<number[]> {
  return Promise.all(
    processes.map(async (each, index) => {
      const answered = once(each, 'message');
      each.send({ policy, key, calls: calls[index] ?? 0 } satisfies Burst);
      const [granted] = (await answered) as [number];
      return granted;
    }),
  );
}
const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);

describe('four processes that share nothing but a database', () => {
  it('grant a user 600 calls, to the call: all at once, or the last of them by turns', async () => {
    expect(sum(await burst(rateLimitPolicies.authenticated, 'at once', [250, 250, 250, 250]))).toBe(600);
    expect(await burst(rateLimitPolicies.authenticated, 'by turns', [149, 149, 149, 149])).toEqual([149, 149, 149, 149]);
    expect(await burst(rateLimitPolicies.authenticated, 'by turns', [0, 3, 0, 0])).toEqual([0, 3, 0, 0]);
    expect(sum(await burst(rateLimitPolicies.authenticated, 'by turns', [9, 9, 9, 9]))).toBe(1);
    expect(sum(await burst(rateLimitPolicies.authenticated, 'by turns', [9, 9, 9, 9]))).toBe(0);
  });

  it('grant an address 30, to the call', async () => {
    expect(sum(await burst(rateLimitPolicies.unauthenticated, 'address', [20, 20, 20, 20]))).toBe(30);
  });
});
