import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { GitFault } from '#shared/git/git-fault.ts';
import { Fuzzer, type FuzzTarget } from '#test/fuzz/git/engine.ts';
import { entryPointTargets } from '#test/fuzz/git/entry-point-targets.ts';
import { type PackFault, packFaults } from '#test/fuzz/git/pack-faults.ts';
import { encodeModel } from '#test/fuzz/git/pack-model.ts';
import { createPackFuzz, type PackFuzz } from '#test/fuzz/git/pack-target.ts';
import { parserTargets } from '#test/fuzz/git/parser-targets.ts';
import { createSessionTargets } from '#test/fuzz/git/session-target.ts';
import { createRandom } from '#test/support/random.ts';

let directory: string;
let packs: PackFuzz;
let sessions: { targets: readonly FuzzTarget[]; close(): Promise<void> };
beforeAll(async () => {
  // In memory where that is possible: every accepted pack is flushed.
  directory = await mkdtemp(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'paas-fuzz-'));
  packs = await createPackFuzz(directory);
  sessions = await createSessionTargets(directory);
});
afterAll(async () => {
  await sessions.close();
  await packs.close();
  await rm(directory, { recursive: true, force: true });
});

/** The short form of `npm run test:fuzz:git`: the same inputs each time. */
async function expectNoFindings(target: FuzzTarget, count: number): Promise<void> {
  const fuzzer = new Fuzzer(target, createRandom(2026));
  await fuzzer.run(count);
  const { findings, inputs, accepted } = fuzzer.result;
  expect(findings.map(({ input, error }) => `${input.toString('base64')}: ${error.stack}`)).toEqual([]);
  expect(inputs).toBe(count);
  expect(accepted).toBeLessThanOrEqual(inputs);
}

it.each([...parserTargets, ...entryPointTargets])(
  '$name: thousands of changed inputs are read, or rejected with a reason',
  async (target) => {
    await expectNoFindings(target, target.batch === undefined ? 2000 : 200);
  },
);

/** True when the pack was accepted. Any error but a rejection fails the test. */
async function take(fault: PackFault, seed: number): Promise<boolean> {
  try {
    await packs.take(createRandom(seed), [fault]);
    return true;
  } catch (error) {
    if (error instanceof GitFault) return false;
    throw new Error(`${fault.name}, seed ${seed}`, { cause: error });
  }
}

it('packs with each possible fault are rejected, or git accepts them too', async () => {
  let accepted = 0;
  for (const fault of packFaults)
    for (const seed of fault.isLarge === true ? [1] : [1, 2, 3]) if (await take(fault, seed)) accepted++;
  expect(accepted).toBeGreaterThan(packFaults.length / 3);
  await packs.targets[0]?.settle?.();
});

it('a pack that is cut off at any byte is rejected', async () => {
  // Blobs, a tree, commits, and deltas of both kinds, one of them thin.
  const seed = 7;
  let whole = 0;
  const measure: PackFault = { name: 'nothing', isFatal: false, apply: (pack) => (whole = encodeModel(pack).length) };
  expect(await take(measure, seed)).toBe(true);
  expect(whole).toBeGreaterThan(400);
  for (let length = 0; length < whole; length++)
    await take({ name: `ends at ${length}`, isFatal: true, apply: (pack) => (pack.length = length) }, seed);
});

it('hundreds of packs are accepted only when git fsck finds them valid', async () => {
  for (const target of packs.targets) await expectNoFindings(target, 200);
});

it('hundreds of sessions move no ref that they report as rejected, and leave no file behind', async () => {
  for (const target of sessions.targets) await expectNoFindings(target, 100);
});

it.each([
  ['planted-crash', [], /planted: a crash/],
  ['planted-endless', ['--input-seconds', '1'], /an input did not end within 1 s/],
  ['planted-memory', ['--max-rss', '384'], /an input made the process use \d+ MiB/],
])('the fuzzer finds planted bugs: %s', async (target, more, message) => {
  const main = fileURLToPath(import.meta.resolve('#test/fuzz/git/fuzz.ts'));
  const { code, output } = await new Promise<{ code: number | null; output: string }>((resolve) => {
    const child = execFile(
      process.execPath,
      [main, '--seconds', '2', '--seed', '1', '--target', target, ...more],
      (_error, stdout, stderr) => resolve({ code: child.exitCode, output: stdout + stderr }),
    );
  });
  expect(output).toMatch(message);
  expect(code).toBe(1);
  const [, findings] = /findings in (.+)/.exec(output) ?? [];
  const [found] = await readdir(findings ?? '');
  expect((await readFile(join(findings ?? '', found ?? ''))).length).toBeGreaterThan(8);
  await rm(findings ?? '', { recursive: true });
});
