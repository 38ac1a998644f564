import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';

/**
 * Deletes the files of packs that others have replaced, and of packs that were stored for a transaction which then did not
 * commit. Only files that are at least so old are deleted. Resolves with how many packs were deleted.
 */
export async function sweepPacks(
  { catalog, files, clock }: Pick<RepositoryAccess, 'catalog' | 'files' | 'clock'>,
  olderThanSeconds: number,
): Promise<number> {
  await catalog.forgetRetired(new Date(clock.now().getTime() - olderThanSeconds * 1000));
  let swept = 0;
  for (const repositoryId of await files.listRepositories()) {
    const known = await catalog.knownPacks(repositoryId);
    if ((await files.listPacks(repositoryId, olderThanSeconds)).every((packId) => known.has(packId))) continue;
    // Checked again under the lock: a push may be adding a pack whose file an earlier push left behind.
    await catalog.withLock(undefined, repositoryId, async (db) => {
      const stored = await files.listPacks(repositoryId, olderThanSeconds);
      const needed = await catalog.knownPacks(repositoryId, db);
      for (const packId of stored) if (!needed.has(packId) && (await files.deletePack(repositoryId, packId))) swept++;
    });
  }
  return swept;
}
