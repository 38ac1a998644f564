/**
 * The long form of the crash suite (`npm run test:crash:long -- --seconds 600 --seed 1`): rounds of kill -9 until the time
 * is over, then a table. Ends with 1 when anything was lost, doubled or left half.
 */
import { parseArgs } from 'node:util';
import { openTestPostgres, removeAbandonedPostgres } from '#test/support/postgres.ts';
import { createRandom } from '#test/support/random.ts';
import { newTally, runRounds, type Tally } from './rounds/rounds.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    rounds: { type: 'string', default: '100' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});

function describe(tally: Tally, seconds: number): string[] {
  const byName = (table: ReadonlyMap<string, number>): string[] =>
    [...table].sort(([a], [b]) => a.localeCompare(b)).map(([name, count]) => `${String(count).padStart(7)}  ${name}`);
  return [
    `${tally.kills} control planes killed in ${Math.round(seconds)} s (${(tally.kills / seconds).toFixed(2)} a second), seed ${values.seed}`,
    'They died',
    ...byName(tally.points),
    'Under way were',
    ...byName(tally.acts),
    `${tally.fscks} repositories held to git fsck --full --strict`,
    `Everything had resumed after ${tally.longestResumeSeconds.toFixed(1)} s at most`,
    `${tally.violations.length} violations`,
    ...tally.violations.map((violation) => ` !     ${violation}`),
  ];
}

await removeAbandonedPostgres();
const postgres = await openTestPostgres();
const begun = performance.now();
const seconds = (): number => (performance.now() - begun) / 1000;
const tally = newTally((violation) => console.log(` !     ${violation}`));
const random = createRandom(Number(values.seed));
const stopping = new AbortController();
process.once('SIGINT', () => stopping.abort());
const timer = setTimeout(() => stopping.abort(), Number(values.seconds) * 1000);
try {
  while (!stopping.signal.aborted) {
    await runRounds(postgres.url, Number(values.rounds), random, tally, stopping.signal);
    console.log(`${Math.round(seconds())} s: ${tally.kills} kills, ${tally.violations.length} violations`);
  }
} finally {
  clearTimeout(timer);
  await postgres.close();
}
for (const line of describe(tally, seconds())) console.log(line);
process.exitCode = tally.violations.length === 0 ? 0 : 1;
