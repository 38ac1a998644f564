/**
 * The long form (`npm run test:crash:replay -- --deliveries 100 --times 1000`): ends with 1 unless there are exactly as many
 * builds as deliveries, and every request was answered so.
 */
import { parseArgs } from 'node:util';
import { openTestPostgres, removeAbandonedPostgres } from '#test/support/database/test-postgres.ts';
import { replayDeliveries } from './replay-deliveries.ts';

const { values } = parseArgs({
  options: {
    deliveries: { type: 'string', default: '100' },
    times: { type: 'string', default: '1000' },
    processes: { type: 'string', default: '3' },
  },
});
const [deliveries, times, processes] = [Number(values.deliveries), Number(values.times), Number(values.processes)];

await removeAbandonedPostgres();
const postgres = await openTestPostgres();
try {
  const begun = performance.now();
  const { answers, builds, jobs, starts, unfair } = await replayDeliveries({
    serverUrl: postgres.url,
    processes,
    deliveries,
    times,
    tell: (line) => console.log(line),
  });
  console.log(
    `${deliveries} deliveries × ${times} at once over ${processes} processes in ${Math.round((performance.now() - begun) / 1000)} s`,
  );
  for (const [answer, count] of Object.entries(answers)) console.log(`${String(count).padStart(8)}  ${answer}`);
  console.log(`${builds} builds, ${jobs} jobs, ${starts} starts counted; ${unfair} deliveries not started exactly once`);
  const right =
    [builds, jobs, starts, answers['200 started']].every((count) => count === deliveries) &&
    unfair === 0 &&
    (answers['200 replayed'] ?? 0) === deliveries * (times - 1);
  process.exitCode = right ? 0 : 1;
} finally {
  await postgres.close();
}
