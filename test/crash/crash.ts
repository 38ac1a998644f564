/**
 * The long form of the crash suite (`npm run test:crash:long -- --fault kill --seconds 600 --seed 1`): runs rounds in which the
 * control plane, its connections or its database are killed until the time is over, then prints a table. Exits with 1 when
 * anything was lost, done twice or left half done; the state is then kept in a directory that it names.
 */
import { parseArgs } from 'node:util';
import { openTestPostgres, removeAbandonedPostgres } from '#test/support/database/test-postgres.ts';
import { type FaultKind, faultKinds } from './rounds/fault-injector.ts';
import { createRoundResults, type RoundResults } from './rounds/round-results.ts';
import { runRounds } from './rounds/run-rounds.ts';

const { values } = parseArgs({
  options: {
    /** kill, cut or postgres. */
    fault: { type: 'string', default: 'kill' },
    seconds: { type: 'string', default: '600' },
    /** Of one environment. */
    rounds: { type: 'string', default: '100' },
    /** At the same time, each with a database of its own. */
    environments: { type: 'string', default: '2' },
    /** For a machine that does something else as well: times are allowed to be so many times longer. */
    patience: { type: 'string', default: '1' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const fault = faultKinds.find((known) => known === values.fault);
if (fault === undefined) throw new Error(`--fault must be one of ${faultKinds.join(', ')}.`);

const titles: Record<FaultKind, string> = {
  kill: 'control planes killed',
  cut: 'times connections cut',
  postgres: 'times PostgreSQL stopped hard',
};

function describe(results: RoundResults, seconds: number): string[] {
  const row = (name: string, ...counts: number[]): string =>
    `${counts.map((count) => String(count).padStart(8)).join('')}  ${name}`;
  const sorted = <Value>(table: ReadonlyMap<string, Value>): [string, Value][] =>
    [...table].sort(([a], [b]) => a.localeCompare(b));
  return [
    `${results.faults} ${titles[fault ?? 'kill']} in ${Math.round(seconds)} s (${(results.faults / seconds).toFixed(2)} a second), seed ${values.seed}`,
    'Faults by point',
    ...sorted(results.faultsByPoint).map(([name, count]) => row(name, count)),
    ' started    intr.  requests of the rounds; intr.: not answered, or their work not finished, at the time of the fault',
    ...sorted(results.requestsByKind).map(([name, { started, interrupted }]) => row(name, started, interrupted)),
    `${results.checkedRepositories} repositories checked by git fsck --full --strict`,
    `All work was resumed and finished within ${results.longestResumeSeconds.toFixed(1)} s`,
    `${results.violations.length} violations`,
    ...results.violations.map((violation) => ` !     ${violation}`),
  ];
}

await removeAbandonedPostgres();
const postgres = await openTestPostgres();
const startedAt = performance.now();
const seconds = (): number => (performance.now() - startedAt) / 1000;
const results = createRoundResults((violation) => console.log(` !     ${violation}`));
let seed = Number(values.seed);
const stopping = new AbortController();
process.once('SIGINT', () => stopping.abort());
const timer = setTimeout(() => stopping.abort(), Number(values.seconds) * 1000);

async function runEnvironments(): Promise<void> {
  while (!stopping.signal.aborted) {
    const options = { fault: fault ?? 'kill', serverUrl: postgres.url, rounds: Number(values.rounds), seed: seed++ };
    await runRounds({ ...options, patience: Number(values.patience), results, stopping: stopping.signal });
    console.log(
      `${Math.round(seconds())} s: ${results.faults} ${titles[options.fault]}, ${results.violations.length} violations`,
    );
  }
}

try {
  await Promise.all(Array.from({ length: Number(values.environments) }, runEnvironments));
} finally {
  clearTimeout(timer);
  await postgres.close();
}
for (const line of describe(results, seconds())) console.log(line);
process.exitCode = results.violations.length === 0 ? 0 : 1;
