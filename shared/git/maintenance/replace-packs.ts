import type { Db } from '#shared/database/db.ts';
import type { CataloguedPack } from '#shared/git/packs/catalog/pack-catalog.ts';
import type { PackPaths } from '#shared/git/packs/files/pack-files.ts';
import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import type { RepositoryId } from '#shared/ids.ts';

/** A pack that maintenance has written. */
export interface NewPack {
  pack: CataloguedPack;
  files: PackPaths;
  unreachableSince?: Date;
}

/** Packs to add in place of others. */
export interface PackReplacement {
  add: readonly NewPack[];
  /** Ids. */
  retire: readonly string[];
  /** Whether nothing has changed since the replacement was computed. Called with the repository locked. */
  isStillValid(db: Db): Promise<boolean>;
}

/** The paths of a quarantine, which can be sent to a thread. */
export function pathsOf({ packPath, indexPath, linksPath }: PackPaths): PackPaths {
  return { packPath, indexPath, linksPath };
}

/** Replaces packs in one transaction. False when the replacement is no longer valid: then nothing has changed. */
export async function replacePacks(
  { catalog, files, clock }: RepositoryAccess,
  repositoryId: RepositoryId,
  { add, retire, isStillValid }: PackReplacement,
): Promise<boolean> {
  for (const { pack, files: made } of add) await files.preparePack(repositoryId, pack.packId, made);
  return await catalog.withLock(undefined, repositoryId, async (db) => {
    if (!(await isStillValid(db))) return false;
    for (const { pack, files: made } of add) await files.storePack(repositoryId, pack.packId, made);
    // The same objects in the same order make a pack with the same id: a new pack may be one of those it replaces.
    if (retire.length > 0) await catalog.retirePacks(db, repositoryId, retire, clock.now());
    for (const { pack, unreachableSince } of add) await catalog.addPack(db, repositoryId, pack, unreachableSince);
    return true;
  });
}
