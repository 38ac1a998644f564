/**
 * `npm run test:fuzz:git -- [--seconds N] [--seed N] [--target name]... [--blind] [--replay file]`: what strangers send to the git
 * gateway, fed with changed inputs; those that reach code none has reached before are kept and changed further. A finding
 * is anything thrown but a refusal, an input that takes 30 s, more than 512 MiB held, a ref that moves in a refused push,
 * a file left in quarantine, a pack or object that we take and git does not. Its input is written to a file, for --replay.
 */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { compareWithGit, objectKinds } from '#shared/git/testing/object-kinds.ts';
import { Coverage } from '#test/fuzz/git/coverage.ts';
import { Fuzzer } from '#test/fuzz/git/engine.ts';
import { createPackFuzz } from '#test/fuzz/git/pack-target.ts';
import { parserTargets } from '#test/fuzz/git/parser-targets.ts';
import { createSessionTargets } from '#test/fuzz/git/session-target.ts';
import { Watchdog } from '#test/fuzz/git/watchdog.ts';
import { createRandom } from '#test/support/random.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '300' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    target: { type: 'string', multiple: true },
    replay: { type: 'string' },
    /** Twice as many inputs, chosen by chance alone. */
    blind: { type: 'boolean', default: false },
  },
});
const seconds = Number(values.seconds);
const seed = Number(values.seed);
/** In memory where there is such a place: packs are written and flushed by the hundred thousand. */
const directory = await mkdtemp(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'paas-fuzz-'));
const findings = await mkdtemp(join(tmpdir(), 'paas-fuzz-findings-'));
const watchdog = new Watchdog(60, join(findings, 'endless'));
const coverage = values.blind ? undefined : new Coverage('/shared/git/');
const packs = await createPackFuzz(directory);
const sessions = await createSessionTargets(directory);
const targets = [...parserTargets, ...packs.targets, ...sessions.targets].filter(
  ({ name }) => values.target === undefined || values.target.includes(name),
);
try {
  if (values.replay === undefined) await fuzz();
  else for (const target of targets) await target.run(await readFile(values.replay));
} finally {
  await sessions.close();
  await packs.close();
  coverage?.close();
  await watchdog.close();
  await rm(directory, { recursive: true, force: true });
}

async function fuzz(): Promise<void> {
  console.log(`seed ${seed}, ${seconds} s, findings in ${findings}`);
  const fuzzers = targets.map(
    (target, index) => new Fuzzer(target, createRandom(seed + index), coverage, (input) => watchdog.announce(input)),
  );
  const objectRandom = createRandom(seed);
  const objects = { count: 0, differences: [] as string[] };
  const end = performance.now() + seconds * 1000;
  const sliceSeconds = Math.min(20, seconds / fuzzers.length / 2);
  for (let round = 0; performance.now() < end; round++) {
    for (const fuzzer of fuzzers) {
      const sliceEnd = Math.min(end, performance.now() + sliceSeconds * 1000);
      while (performance.now() < sliceEnd) await fuzzer.run(500);
    }
    const kind = values.target === undefined ? objectKinds[round % objectKinds.length] : undefined;
    if (kind !== undefined && performance.now() < end) {
      objects.differences.push(...(await compareWithGit(kind, objectRandom, 5000, directory)).differences);
      objects.count += 5000;
    }
  }
  for (const { target, result, corpusSize } of fuzzers) {
    const { inputs, taken, refused, slowestMilliseconds } = result;
    console.log(
      `${target.name.padEnd(18)} ${String(inputs).padStart(9)} inputs, ${taken} taken, ${refused} refused, ` +
        `${corpusSize} kept, slowest ${Math.round(slowestMilliseconds)} ms, ${result.findings.length} findings`,
    );
    for (const [number, { input, error }] of result.findings.entries()) {
      const file = join(findings, `${target.name}-${number}`);
      await writeFile(file, input);
      console.log(`  ${file}: ${error.stack}${error.cause instanceof Error ? `\n${error.cause.stack}` : ''}`);
      process.exitCode = 1;
    }
  }
  console.log(`${objects.count} objects against git fsck, ${objects.differences.length} seen differently`);
  for (const difference of objects.differences.slice(0, 20)) console.log(`  ${difference}`);
  if (objects.differences.length > 0) process.exitCode = 1;
  for (const [fault, count] of packs.stricter) console.log(`refused here only, ${count} times: ${fault}`);
  console.log(
    `${coverage?.blocks ?? 0} blocks reached, ${Math.round(process.memoryUsage().rss / 1024 / 1024)} MiB held at the end`,
  );
}
