import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { git, tryGit } from '#shared/git/testing/git-client.ts';
import type { GitFixture } from '#shared/git/testing/git-fixture.ts';
import type { RepositoryId } from '#shared/ids.ts';

/** The packs that are part of a repository, smallest first. */
export async function listStoredPacks(
  { db }: GitFixture,
  repositoryId: RepositoryId,
): Promise<{ objects: number; unreachable: boolean }[]> {
  const rows = await db
    .selectFrom('git_packs')
    .selectAll()
    .where('repository_id', '=', repositoryId)
    .where('retired_at', 'is', null)
    .orderBy('object_count')
    .execute();
  return rows.map(({ object_count, unreachable_since }) => ({ objects: object_count, unreachable: unreachable_since !== null }));
}

/**
 * Sweeps, and expects that stock git finds the repository complete, that our indexes are those of stock git, and that there are no
 * other files. Returns the path of a bare copy.
 */
export async function expectIntact(fixture: GitFixture, repositoryId: RepositoryId): Promise<string> {
  await fixture.storage.sweep(0);
  expect(await fixture.listQuarantines(repositoryId)).toEqual([]);
  const bare = await fixture.exportBare(repositoryId);
  const { code, stderr } = await tryGit(bare, ['fsck', '--full', '--strict', '--no-dangling']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringMatching(/error|missing|broken/) });
  const directory = join(bare, 'objects', 'pack');
  const packs = (await readdir(directory)).filter((name) => name.endsWith('.pack'));
  expect(packs.length).toBe((await listStoredPacks(fixture, repositoryId)).length);
  for (const pack of packs) {
    const theirs = join(bare, 'theirs.idx');
    await git(bare, 'index-pack', '-o', theirs, join(directory, pack));
    const ours = join(directory, pack.replace(/\.pack$/, '.idx'));
    expect((await tryGit(bare, ['diff', '--no-index', '--quiet', ours, theirs])).code).toBe(0);
  }
  return bare;
}

/** Every object of a bare repository with its type and size, sorted by id. */
export async function listObjects(bare: string): Promise<string[]> {
  return (await git(bare, 'cat-file', '--batch-check', '--batch-all-objects')).split('\n');
}

/** Ids of the objects that the refs of a bare repository reach, sorted. */
export async function listReachable(bare: string): Promise<string[]> {
  return (await git(bare, 'rev-list', '--objects', '--all', '--no-object-names')).split('\n').toSorted();
}
