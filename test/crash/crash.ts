/**
 * The long form of the crash suite (`npm run test:crash:long -- --way kill --seconds 600 --seed 1`): rounds in which the
 * control plane, its connections or its database are killed, until the time is over, then a table. Ends with 1 when
 * anything was lost, doubled or left half; what there is to look at is then kept in a directory that is named.
 */
import { parseArgs } from 'node:util';
import { openTestPostgres, removeAbandonedPostgres } from '#test/support/database/test-postgres.ts';
import { runRounds } from './rounds/rounds.ts';
import { type Way, ways } from './rounds/strikes.ts';
import { newTally, type Tally } from './rounds/tally.ts';

const { values } = parseArgs({
  options: {
    way: { type: 'string', default: 'kill' },
    seconds: { type: 'string', default: '600' },
    /** On one database. */
    rounds: { type: 'string', default: '100' },
    /** At once, each on a database of its own. */
    worlds: { type: 'string', default: '2' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const way = ways.find((known) => known === values.way);
if (way === undefined) throw new Error(`--way is one of ${ways.join(', ')}.`);

const titles: Record<Way, string> = {
  kill: 'control planes killed',
  cut: 'times connections cut',
  postgres: 'times PostgreSQL stopped hard',
};

function describe(tally: Tally, seconds: number): string[] {
  const row = (name: string, ...counts: number[]): string =>
    `${counts.map((count) => String(count).padStart(8)).join('')}  ${name}`;
  const sorted = <Value>(table: ReadonlyMap<string, Value>): [string, Value][] =>
    [...table].sort(([a], [b]) => a.localeCompare(b));
  return [
    `${tally.strikes} ${titles[way ?? 'kill']} in ${Math.round(seconds)} s (${(tally.strikes / seconds).toFixed(2)} a second), seed ${values.seed}`,
    'Where it struck',
    ...sorted(tally.points).map(([name, count]) => row(name, count)),
    '   begun     cut  requests in the round; cut: not answered, or their work not done when it struck',
    ...sorted(tally.acts).map(([name, { begun, cut }]) => row(name, begun, cut)),
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
let seed = Number(values.seed);
const stopping = new AbortController();
process.once('SIGINT', () => stopping.abort());
const timer = setTimeout(() => stopping.abort(), Number(values.seconds) * 1000);

async function playWorlds(): Promise<void> {
  while (!stopping.signal.aborted) {
    const here = { way: way ?? 'kill', serverUrl: postgres.url, rounds: Number(values.rounds), seed: seed++ };
    await runRounds({ ...here, tally, stopping: stopping.signal });
    console.log(`${Math.round(seconds())} s: ${tally.strikes} ${titles[here.way]}, ${tally.violations.length} violations`);
  }
}

try {
  await Promise.all(Array.from({ length: Number(values.worlds) }, playWorlds));
} finally {
  clearTimeout(timer);
  await postgres.close();
}
for (const line of describe(tally, seconds())) console.log(line);
process.exitCode = tally.violations.length === 0 ? 0 : 1;
