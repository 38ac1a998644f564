/**
 * The long form of replay.test.ts (`npm run test:crash:replay -- --deliveries 100 --times 1000`). Exits with 1 unless there are
 * exactly as many builds as deliveries, and every request was answered accordingly.
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
  const startedAt = performance.now();
  const { answers, builds, jobs, starts, notStartedOnce } = await replayDeliveries({
    serverUrl: postgres.url,
    processes,
    deliveries,
    times,
    report: (line) => console.log(line),
  });
  console.log(
    `${deliveries} deliveries × ${times} at once over ${processes} processes in ${Math.round((performance.now() - startedAt) / 1000)} s`,
  );
  for (const [answer, count] of Object.entries(answers)) console.log(`${String(count).padStart(8)}  ${answer}`);
  console.log(`${builds} builds, ${jobs} jobs, ${starts} starts counted; ${notStartedOnce} deliveries not started exactly once`);
  const correct =
    [builds, jobs, starts, answers['200 started']].every((count) => count === deliveries) &&
    notStartedOnce === 0 &&
    (answers['200 replayed'] ?? 0) === deliveries * (times - 1);
  process.exitCode = correct ? 0 : 1;
} finally {
  await postgres.close();
}
