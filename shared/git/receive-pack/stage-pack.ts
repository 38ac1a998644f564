import { GitFault } from '#shared/git/git-fault.ts';
import type { StagedPack } from '#shared/git/git-storage.ts';
import type { Quarantine } from '#shared/git/packs/files/quarantine.ts';
import type { PackLimits } from '#shared/git/packs/intake/pack-scanner.ts';
import { locatePacks } from '#shared/git/repository/locate-packs.ts';
import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import type { RepositoryId } from '#shared/ids.ts';

/** A pack to be received. */
export interface StageRequest {
  /** With the seconds that the pack may take to arrive. */
  limits: PackLimits & { seconds: number };
  repositoryId: RepositoryId;
  quarantine: Quarantine;
  /** Read to the end of the pack at most. */
  input: AsyncIterator<Uint8Array>;
  clientGone: AbortSignal;
}

/**
 * Receives a pack into quarantine: indexes it while it arrives, completes and checks it.
 *
 * @returns undefined for a pack without objects
 * @throws GitFault when the pack is invalid or took too long; PackStorageError
 */
export async function stagePack(
  access: RepositoryAccess,
  { limits, repositoryId, quarantine, input, clientGone }: StageRequest,
): Promise<StagedPack | undefined> {
  const listed = await access.catalog.listPacks(repositoryId);
  // Unreachable objects may be removed while the pack arrives: they count as missing.
  const reachable = listed.filter(({ unreachableSince }) => unreachableSince === undefined);
  const unreachable = listed.flatMap((pack) => (reachable.includes(pack) ? [] : pack.packId));
  using located = await locatePacks(access, repositoryId, reachable);
  const timeUp = new AbortController();
  // Not `AbortSignal.timeout`: it would keep what depends on it in memory until the time is over, long after the push.
  const timer = setTimeout(() => timeUp.abort(), limits.seconds * 1000).unref();
  const { packPath, indexPath, linksPath } = quarantine;
  const request = {
    packPath,
    indexPath,
    linksPath,
    limits: { packBytes: limits.packBytes, objectBytes: limits.objectBytes, objects: limits.objects },
    tolerated: access.tolerated,
  };
  const signal = AbortSignal.any([timeUp.signal, clientGone]);
  const received = await access.workers
    .run('intake', { packs: located.packs, request }, { input, signal })
    .catch((error: unknown) => {
      throw timeUp.signal.aborted ? new GitFault(`the pack took more than ${limits.seconds} s to arrive`) : error;
    })
    .finally(() => clearTimeout(timer));
  if (received === undefined) return undefined;
  const { catalog, files } = access;
  await files.preparePack(repositoryId, received.packId, quarantine);
  return {
    ...received,
    admit: (db) =>
      catalog.withLock(db, repositoryId, async (locked) => {
        await files.storePack(repositoryId, received.packId, quarantine);
        await catalog.addPack(locked, repositoryId, received);
        // Packs that were found unreachable since then may hold objects that this one was checked against.
        await catalog.reinstatePacks(locked, repositoryId, unreachable);
      }),
    discard: () => quarantine.clear(),
  };
}
