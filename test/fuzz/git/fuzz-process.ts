/** One process of `fuzz.ts`, which starts it: feeds targets until its time is up or it is told to stop, and reports after each round. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { compareWithGit, objectKinds } from '#shared/git/testing/object-kinds.ts';
import { Coverage } from '#test/fuzz/git/coverage.ts';
import { Fuzzer } from '#test/fuzz/git/engine.ts';
import { doorTargets } from '#test/fuzz/git/entry-point-targets.ts';
import type { FuzzReport } from '#test/fuzz/git/fuzz-report.ts';
import { createPackFuzz } from '#test/fuzz/git/pack-target.ts';
import { parserTargets } from '#test/fuzz/git/parser-targets.ts';
import { plantedTargets } from '#test/fuzz/git/planted-targets.ts';
import { createSessionTargets } from '#test/fuzz/git/session-target.ts';
import { Watchdog, type WatchdogLimits } from '#test/fuzz/git/watchdog.ts';
import { createRandom } from '#test/support/random.ts';

export interface FuzzOrder {
  seconds: number;
  seed: number;
  limits: WatchdogLimits;
  /** For files, to be removed by whoever gives the order. */
  directory: string;
  /** Where inputs go that are findings. */
  findings: string;
  /** All but planted ones where undefined. */
  targets: readonly string[] | undefined;
  blind: boolean;
  /** A file with an input, to run instead. */
  replay: string | undefined;
}

/** Of which coverage is taken in one: counting costs more than it finds once little is new. */
const roundsOfCoverage = 4;
const longestRoundSeconds = 60;
const objectsEachRound = 5000;

const order = JSON.parse(process.argv[2] ?? '') as FuzzOrder;
// Most inputs end in an error, and its stack would take as long as all the rest. A replay has them.
if (order.replay === undefined) Error.stackTraceLimit = 0;
const watchdog = new Watchdog(order.limits, join(order.findings, `killed-${order.seed}`));
const coverage = new Coverage('/shared/git/', '/api/git/', '/sshd/');
const packs = await createPackFuzz(order.directory);
const sessions = await createSessionTargets(order.directory);
const all = [...parserTargets, ...doorTargets, ...packs.targets, ...sessions.targets];
const targets =
  order.targets === undefined ? all : [...all, ...plantedTargets].filter(({ name }) => order.targets?.includes(name));
let end = performance.now() + order.seconds * 1000;
process.on('message', () => {
  end = 0;
});
try {
  if (order.replay === undefined) await fuzz();
  else for (const target of targets) await target.run(await readFile(order.replay));
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
      new Fuzzer(target, createRandom(order.seed + index), { coverage, announce: (input) => watchdog.announce(input) }),
  );
  const objectRandom = createRandom(order.seed);
  const objects: FuzzReport['objects'] = { count: 0, differences: [] };
  const shares = targets.reduce((sum, { share = 1 }) => sum + share, 0);
  const roundSeconds = Math.min(longestRoundSeconds, order.seconds / 2);
  for (let round = 0; performance.now() < end; round++) {
    if (round % roundsOfCoverage === 0 && !order.blind) coverage.start();
    else coverage.stop();
    for (const fuzzer of fuzzers) {
      const seconds = (roundSeconds * (fuzzer.target.share ?? 1)) / shares;
      const sliceEnd = performance.now() + seconds * 1000;
      while (performance.now() < Math.min(end, sliceEnd)) await fuzzer.run(500);
    }
    const kind = order.targets === undefined ? objectKinds[round % objectKinds.length] : undefined;
    if (kind !== undefined && performance.now() < end) {
      objects.differences.push(...(await compareWithGit(kind, objectRandom, objectsEachRound, order.directory)).differences);
      objects.count += objectsEachRound;
    }
    await tell(fuzzers, objects);
  }
}

async function tell(fuzzers: readonly Fuzzer[], objects: FuzzReport['objects']): Promise<void> {
  const report: FuzzReport = {
    targets: await Promise.all(fuzzers.map(describe)),
    objects,
    stricter: Object.fromEntries(packs.stricter),
    faults: Object.fromEntries(packs.faults),
    blocks: coverage.blocks,
    peakBytes: process.resourceUsage().maxRSS * 1024,
  };
  await new Promise<void>((resolve, reject) => {
    process.send?.(report, (error: Error | null) => (error === null ? resolve() : reject(error)));
  });
}

async function describe({ target, result, corpusSize }: Fuzzer): Promise<FuzzReport['targets'][number]> {
  const { findings, ...counts } = result;
  const told = findings.map(async ({ input, error }, number) => {
    const file = join(order.findings, `${target.name}-${order.seed}-${number}`);
    await writeFile(file, input);
    return `${file}: ${error.stack}${error.cause instanceof Error ? `\n${error.cause.stack}` : ''}`;
  });
  return { name: target.name, ...counts, kept: corpusSize, findings: await Promise.all(told) };
}
