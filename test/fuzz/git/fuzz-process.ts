/** One process of `fuzz.ts`: runs targets until its time is over or it gets a message, and sends a report after each round. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { compareWithGit, objectKinds } from '#shared/git/testing/object-kinds.ts';
import { Coverage } from '#test/fuzz/git/coverage.ts';
import { Fuzzer } from '#test/fuzz/git/engine.ts';
import { entryPointTargets } from '#test/fuzz/git/entry-point-targets.ts';
import type { FuzzReport } from '#test/fuzz/git/fuzz-report.ts';
import { createPackFuzz } from '#test/fuzz/git/pack-target.ts';
import { parserTargets } from '#test/fuzz/git/parser-targets.ts';
import { plantedTargets } from '#test/fuzz/git/planted-targets.ts';
import { createSessionTargets } from '#test/fuzz/git/session-target.ts';
import { Watchdog, type WatchdogLimits } from '#test/fuzz/git/watchdog.ts';
import { createRandom } from '#test/support/random.ts';

/** What a process is to do. */
export interface FuzzJob {
  seconds: number;
  seed: number;
  limits: WatchdogLimits;
  /** For temporary files. The parent process removes it. */
  directory: string;
  /** Gets the inputs of findings. */
  findings: string;
  /** Names; undefined for all but the planted ones. */
  targets: readonly string[] | undefined;
  blind: boolean;
  /** A file with one input to run instead. */
  replay: string | undefined;
}

/** Coverage is collected in one of so many rounds: it takes much time, and finds little once most code has run. */
const roundsOfCoverage = 4;
const longestRoundSeconds = 60;
const objectsEachRound = 5000;

const job = JSON.parse(process.argv[2] ?? '') as FuzzJob;
// Most inputs end in an error, whose stack would take as long as everything else. A replay has stacks.
if (job.replay === undefined) Error.stackTraceLimit = 0;
const watchdog = new Watchdog(job.limits, join(job.findings, `killed-${job.seed}`));
const coverage = new Coverage('/shared/git/', '/api/git/', '/sshd/');
const packs = await createPackFuzz(job.directory);
const sessions = await createSessionTargets(job.directory);
const all = [...parserTargets, ...entryPointTargets, ...packs.targets, ...sessions.targets];
const targets = job.targets === undefined ? all : [...all, ...plantedTargets].filter(({ name }) => job.targets?.includes(name));
let end = performance.now() + job.seconds * 1000;
process.on('message', () => {
  end = 0;
});
try {
  if (job.replay === undefined) await fuzz();
  else for (const target of targets) await target.run(await readFile(job.replay));
} finally {
  await sessions.close();
  await packs.close();
  coverage.close();
  await watchdog.close();
  process.disconnect?.();
}

async function fuzz(): Promise<void> {
  const fuzzers = targets.map(
    (target, index) =>
      new Fuzzer(target, createRandom(job.seed + index), { coverage, announce: (input) => watchdog.announce(input) }),
  );
  const objectRandom = createRandom(job.seed);
  const objects: FuzzReport['objects'] = { count: 0, differences: [] };
  const shares = targets.reduce((sum, { share = 1 }) => sum + share, 0);
  const roundSeconds = Math.min(longestRoundSeconds, job.seconds / 2);
  for (let round = 0; performance.now() < end; round++) {
    if (round % roundsOfCoverage === 0 && !job.blind) coverage.start();
    else coverage.stop();
    for (const fuzzer of fuzzers) {
      const seconds = (roundSeconds * (fuzzer.target.share ?? 1)) / shares;
      const sliceEnd = performance.now() + seconds * 1000;
      while (performance.now() < Math.min(end, sliceEnd)) await fuzzer.run(500);
    }
    const kind = job.targets === undefined ? objectKinds[round % objectKinds.length] : undefined;
    if (kind !== undefined && performance.now() < end) {
      objects.differences.push(...(await compareWithGit(kind, objectRandom, objectsEachRound, job.directory)).differences);
      objects.count += objectsEachRound;
    }
    await report(fuzzers, objects);
  }
}

async function report(fuzzers: readonly Fuzzer[], objects: FuzzReport['objects']): Promise<void> {
  const facts: FuzzReport = {
    targets: await Promise.all(fuzzers.map(describe)),
    objects,
    stricter: Object.fromEntries(packs.stricter),
    faults: Object.fromEntries(packs.faults),
    blocks: coverage.blocks,
    peakBytes: process.resourceUsage().maxRSS * 1024,
  };
  await new Promise<void>((resolve, reject) => {
    process.send?.(facts, (error: Error | null) => (error === null ? resolve() : reject(error)));
  });
}

async function describe({ target, result, corpusSize }: Fuzzer): Promise<FuzzReport['targets'][number]> {
  const { findings, ...counts } = result;
  const described = findings.map(async ({ input, error }, number) => {
    const file = join(job.findings, `${target.name}-${job.seed}-${number}`);
    await writeFile(file, input);
    return `${file}: ${error.stack}${error.cause instanceof Error ? `\n${error.cause.stack}` : ''}`;
  });
  return { name: target.name, ...counts, kept: corpusSize, findings: await Promise.all(described) };
}
