/**
 * `npm run test:fuzz:git -- [--seconds N] [--seed N] [--processes N] [--target name]... [--blind] [--replay file]`: gives mutated
 * input to everything in the git gateway that reads what clients send. Inputs that run code which no other input has run are kept
 * and mutated further. A finding is: any error but a rejection; an input that takes 30 s of CPU time, or more than 512 MiB of memory;
 * a ref that moves in a rejected push; a file left in quarantine; a pack or object that we accept and git does not; a pack that we
 * accept with a fault that no reader may accept. The input of a finding is written to a file for --replay, which also prints the
 * stack. SIGINT and SIGTERM end the run early, with its table.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { FuzzJob } from '#test/fuzz/git/fuzz-process.ts';
import { countFindings, describeReport, type FuzzReport, mergeReports } from '#test/fuzz/git/fuzz-report.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '300' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    processes: { type: 'string', default: '1' },
    target: { type: 'string', multiple: true },
    replay: { type: 'string' },
    /** Without coverage: more inputs, at random. */
    blind: { type: 'boolean', default: false },
    /** CPU time for one input. */
    'input-seconds': { type: 'string', default: '30' },
    'max-rss': { type: 'string', default: '512' },
  },
});
const job: FuzzJob = {
  seconds: Number(values.seconds),
  seed: Number(values.seed),
  limits: { seconds: Number(values['input-seconds']), bytes: Number(values['max-rss']) * 1024 * 1024 },
  // In memory where that is possible: hundreds of thousands of packs are written and flushed.
  directory: await mkdtemp(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'paas-fuzz-')),
  findings: await mkdtemp(join(tmpdir(), 'paas-fuzz-findings-')),
  targets: values.target,
  blind: values.blind,
  replay: values.replay,
};
console.log(`seed ${job.seed}, ${job.seconds} s, findings in ${job.findings}`);
const children: ChildProcess[] = [];
const reports: FuzzReport[] = [];
const ends = Array.from({ length: Number(values.processes) }, async (_, number) => {
  // Far apart, because each target uses the next seed after that of its process.
  const child = fork(fileURLToPath(import.meta.resolve('#test/fuzz/git/fuzz-process.ts')), [
    JSON.stringify({ ...job, seed: job.seed + number * 1_000_000 }),
  ]);
  children.push(child);
  child.on('message', (report: FuzzReport) => {
    reports[number] = report;
  });
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  if (code === 0) return;
  console.log(`process ${number} ended by ${signal ?? `status ${code}`}: its last input is in ${job.findings}`);
  process.exitCode = 1;
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    for (const child of children) if (child.connected) child.send('stop');
  });
}
await Promise.all(ends);
await rm(job.directory, { recursive: true, force: true });
const report = mergeReports(reports.filter((each) => each !== undefined));
for (const line of describeReport(report)) console.log(line);
if (countFindings(report) > 0) process.exitCode = 1;
