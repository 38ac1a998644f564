import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Fuzzer, type FuzzTarget } from '#test/fuzz/git/engine.ts';
import { createPackFuzz, type PackFuzz } from '#test/fuzz/git/pack-target.ts';
import { parserTargets } from '#test/fuzz/git/parser-targets.ts';
import { createSessionTargets } from '#test/fuzz/git/session-target.ts';
import { createRandom } from '#test/support/random.ts';

let directory: string;
let packs: PackFuzz;
let sessions: { targets: readonly FuzzTarget[]; close(): Promise<void> };
beforeAll(async () => {
  // In memory where there is such a place: every pack that is taken is flushed.
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
async function fuzz(target: FuzzTarget, count: number): Promise<void> {
  const fuzzer = new Fuzzer(target, createRandom(2026));
  await fuzzer.run(count);
  const { findings, inputs, taken } = fuzzer.result;
  expect(findings.map(({ input, error }) => `${input.toString('base64')}: ${error.stack}`)).toEqual([]);
  expect(inputs).toBe(count);
  expect(taken).toBeLessThanOrEqual(inputs);
}

it.each(parserTargets)('$name: thousands of changed inputs are read or refused with a reason', async (target) => {
  await fuzz(target, 2000);
});

it('packs by the hundred are taken only where git fsck finds them sound', async () => {
  for (const target of packs.targets) await fuzz(target, 200);
});

it('sessions by the hundred move no ref that they report as refused, and leave no file behind', async () => {
  for (const target of sessions.targets) await fuzz(target, 100);
});
