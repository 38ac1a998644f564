import { afterAll, beforeAll, expect, it } from 'vitest';
import { openTestPostgres, type TestPostgres } from '#test/support/database/test-postgres.ts';
import { createRoundResults } from './rounds/round-results.ts';
import { runRounds } from './rounds/run-rounds.ts';

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await openTestPostgres();
});
afterAll(() => postgres?.close());

it('kill -9 at named points, at random points and at random moments: nothing is lost, done twice or left half done', async () => {
  const results = createRoundResults();
  // The first round only counts the fail points.
  await runRounds({ fault: 'kill', serverUrl: postgres.url, rounds: 5, oneAppPerKind: true, seed: 1, results });
  expect(results.violations).toEqual([]);
  expect(results.faults).toBe(4);
});

it('connections cut around a COMMIT: nothing is lost, done twice or left half done, and no answer is wrong', async () => {
  const results = createRoundResults();
  await runRounds({ fault: 'cut', serverUrl: postgres.url, rounds: 2, oneAppPerKind: true, seed: 1, results });
  expect(results.violations).toEqual([]);
  expect(results.faults).toBeGreaterThan(0);
});
