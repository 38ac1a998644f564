/**
 * `npm run test:fuzz:git -- [--seconds N] [--seed N] [--processes N] [--target name]... [--blind] [--replay file]`: what
 * strangers send to the git gateway, fed with changed inputs; those that reach code none has reached before are kept and
 * changed further. A finding is anything thrown but a refusal, an input that takes 30 s of the processor, more than 512 MiB
 * held, a ref that moves in a refused push, a file left in quarantine, a pack or object that we take and git does not, a pack
 * that is taken though it has a fault that no reader may overlook. Its input is written to a file, for --replay,
 * which also tells the stack.
 * SIGINT and SIGTERM end it early, with its table.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { FuzzOrder } from '#test/fuzz/git/fuzz-process.ts';
import { countFindings, describeReport, type FuzzReport, mergeReports } from '#test/fuzz/git/fuzz-report.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '300' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    processes: { type: 'string', default: '1' },
    target: { type: 'string', multiple: true },
    replay: { type: 'string' },
    /** More inputs, chosen by chance alone. */
    blind: { type: 'boolean', default: false },
    /** For one input. */
    'input-seconds': { type: 'string', default: '30' },
    'max-rss': { type: 'string', default: '512' },
  },
});
const order: FuzzOrder = {
  seconds: Number(values.seconds),
  seed: Number(values.seed),
  limits: { seconds: Number(values['input-seconds']), bytes: Number(values['max-rss']) * 1024 * 1024 },
  // In memory where there is such a place: packs are written and flushed by the hundred thousand.
  directory: await mkdtemp(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'paas-fuzz-')),
  findings: await mkdtemp(join(tmpdir(), 'paas-fuzz-findings-')),
  targets: values.target,
  blind: values.blind,
  replay: values.replay,
};
console.log(`seed ${order.seed}, ${order.seconds} s, findings in ${order.findings}`);
const children: ChildProcess[] = [];
const reports: FuzzReport[] = [];
const ends = Array.from({ length: Number(values.processes) }, async (_, number) => {
  // Far apart: each target counts on from the seed of its process.
  const child = fork(fileURLToPath(import.meta.resolve('#test/fuzz/git/fuzz-process.ts')), [
    JSON.stringify({ ...order, seed: order.seed + number * 1_000_000 }),
  ]);
  children.push(child);
  child.on('message', (report: FuzzReport) => {
    reports[number] = report;
  });
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  if (code === 0) return;
  console.log(`process ${number} ended by ${signal ?? `status ${code}`}: what it was at is in ${order.findings}`);
  process.exitCode = 1;
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    for (const child of children) if (child.connected) child.send('stop');
  });
}
await Promise.all(ends);
await rm(order.directory, { recursive: true, force: true });
const report = mergeReports(reports.filter((each) => each !== undefined));
for (const line of describeReport(report)) console.log(line);
if (countFindings(report) > 0) process.exitCode = 1;
