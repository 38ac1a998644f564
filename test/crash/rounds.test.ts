import { afterAll, beforeAll, expect, it } from 'vitest';
import { openTestPostgres, type TestPostgres } from '#test/support/postgres.ts';
import { createRandom } from '#test/support/random.ts';
import { newTally, runRounds } from './rounds/rounds.ts';

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await openTestPostgres();
});
afterAll(() => postgres?.close());

it('kill -9 at named points, at random points and at random moments loses, doubles and halves nothing', async () => {
  const tally = newTally();
  // The first kills nobody, and learns which points there are.
  await runRounds(postgres.url, 5, createRandom(1), tally);
  expect(tally.violations).toEqual([]);
  expect(tally.kills).toBe(4);
});
