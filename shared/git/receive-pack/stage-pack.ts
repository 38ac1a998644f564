import { GitFault } from '#shared/git/git-fault.ts';
import type { StagedPack } from '#shared/git/git-storage.ts';
import type { Quarantine } from '#shared/git/packs/files/quarantine.ts';
import type { PackLimits } from '#shared/git/packs/intake/pack-scanner.ts';
import { locatePacks, type RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import type { RepositoryId } from '#shared/ids.ts';

/**
 * Receives a pack into quarantine, whoever sends it: indexed while it arrives, completed and checked.
 *
 * @param input is read to the end of the pack at most
 * @returns undefined for a pack without objects
 * @throws GitFault when the pack is not sound, or took too long; PackStorageError
 */
export async function stagePack(
  access: RepositoryAccess,
  limits: PackLimits & { seconds: number },
  repositoryId: RepositoryId,
  quarantine: Quarantine,
  input: AsyncIterator<Uint8Array>,
  gone: AbortSignal,
): Promise<StagedPack | undefined> {
  const listed = await access.catalog.listPacks(repositoryId);
  // What nothing needs may be removed while the pack is on its way in: it counts as not there.
  const reachable = listed.filter(({ unreachableSince }) => unreachableSince === undefined);
  const unreachable = listed.flatMap((pack) => (reachable.includes(pack) ? [] : pack.packId));
  using located = await locatePacks(access, repositoryId, reachable);
  const timeUp = new AbortController();
  // Not `AbortSignal.timeout`: that and all that hangs on it would be held until the time is over, long after the push.
  const timer = setTimeout(() => timeUp.abort(), limits.seconds * 1000).unref();
  const { packPath, indexPath, linksPath } = quarantine;
  const request = {
    packPath,
    indexPath,
    linksPath,
    limits: { packBytes: limits.packBytes, objectBytes: limits.objectBytes, objects: limits.objects },
    tolerated: access.tolerated,
  };
  const signal = AbortSignal.any([timeUp.signal, gone]);
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
      catalog.hold(db, repositoryId, async (held) => {
        await files.keepPack(repositoryId, received.packId, quarantine);
        await catalog.addPack(held, repositoryId, received);
        // What was found unreachable since then may be what it was checked against.
        await catalog.reinstatePacks(held, repositoryId, unreachable);
      }),
    discard: () => quarantine.clear(),
  };
}
