import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { compareWithGit, objectKinds } from '#shared/git/testing/object-kinds.ts';
import { createRandom } from '#test/support/random.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-fsck-'));
});
afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

it.each(objectKinds)('judges $name like git fsck, whatever their bytes', async (kind) => {
  const count = 1500;
  const { rejected, differences } = await compareWithGit(kind, createRandom(1), count, directory);
  expect(differences).toEqual([]);
  expect(rejected).toBeGreaterThan(count / 20);
  expect(rejected).toBeLessThan(count);
});
