import { afterAll, beforeAll, expect, it } from 'vitest';
import { openTestPostgres, type TestPostgres } from '#test/support/database/test-postgres.ts';
import { runRounds } from './rounds/rounds.ts';
import { newTally } from './rounds/tally.ts';

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await openTestPostgres();
});
afterAll(() => postgres?.close());

it('kill -9 at named points, at random points and at random moments loses, doubles and halves nothing', async () => {
  const tally = newTally();
  // The first kills nobody, and learns which points there are.
  await runRounds({ way: 'kill', serverUrl: postgres.url, rounds: 5, few: true, seed: 1, tally });
  expect(tally.violations).toEqual([]);
  expect(tally.strikes).toBe(4);
});

it('connections cut around a COMMIT lose, double and halve nothing, and nobody is told what is not so', async () => {
  const tally = newTally();
  await runRounds({ way: 'cut', serverUrl: postgres.url, rounds: 2, few: true, seed: 1, tally });
  expect(tally.violations).toEqual([]);
  expect(tally.strikes).toBeGreaterThan(0);
});
