import type { Db } from '#shared/database/schema.ts';
import type { CataloguedPack } from '#shared/git/packs/catalog/pack-catalog.ts';
import type { PackPaths } from '#shared/git/packs/files/pack-files.ts';
import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import type { RepositoryId } from '#shared/ids.ts';

export interface NewPack {
  pack: CataloguedPack;
  files: PackPaths;
  unreachableSince?: Date;
}

export interface PackReplacement {
  add: readonly NewPack[];
  /** Ids. */
  retire: readonly string[];
  /** Whether all is still as it was when the replacement was worked out; asked when nobody else can change it any more. */
  isStillRight(db: Db): Promise<boolean>;
}

/** What a thread is told of a quarantine. */
export function pathsOf({ packPath, indexPath, linksPath }: PackPaths): PackPaths {
  return { packPath, indexPath, linksPath };
}

/** Puts packs in the place of others, at once or not at all. False when that is not right any more: then nothing has changed. */
export async function replacePacks(
  { catalog, files, clock }: RepositoryAccess,
  repositoryId: RepositoryId,
  { add, retire, isStillRight }: PackReplacement,
): Promise<boolean> {
  for (const { pack, files: made } of add) await files.preparePack(repositoryId, pack.packId, made);
  return await catalog.withLock(undefined, repositoryId, async (db) => {
    if (!(await isStillRight(db))) return false;
    for (const { pack, files: made } of add) await files.storePack(repositoryId, pack.packId, made);
    // The same objects in the same order make a pack of the same id: it may be among those it stands in for.
    if (retire.length > 0) await catalog.retirePacks(db, repositoryId, retire, clock.now());
    for (const { pack, unreachableSince } of add) await catalog.addPack(db, repositoryId, pack, unreachableSince);
    return true;
  });
}
