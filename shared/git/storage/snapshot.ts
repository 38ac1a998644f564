import { AppError } from '#shared/errors.ts';
import type { Snapshot } from '#shared/git/git-storage.ts';
import type { Quarantine } from '#shared/git/packs/files/quarantine.ts';
import type { PackLimits } from '#shared/git/packs/intake/pack-scanner.ts';
import { readPacks } from '#shared/git/repository/pinned-packs.ts';
import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import { listSubmodules, readTree } from '#shared/git/storage/git-reader.ts';
import type { ObjectId } from '#shared/ids.ts';

/**
 * Receives a commit without its history into quarantine, where it stays.
 * @throws GitFault when the pack is not sound; AppError when it has not got the commit
 */
export async function takeSnapshot(
  { workers, tolerated }: Pick<RepositoryAccess, 'workers' | 'tolerated'>,
  limits: PackLimits,
  quarantine: Quarantine,
  commit: ObjectId,
  input: AsyncIterator<Uint8Array>,
  signal: AbortSignal,
): Promise<Snapshot> {
  const { packPath, indexPath, linksPath } = quarantine;
  const request = { packPath, indexPath, linksPath, limits, withoutHistory: true as const, tolerated };
  const received = await workers.run('intake', { packs: [], request }, { input, signal });
  if (received === undefined) throw lacking();
  const packs = readPacks(workers, [{ key: packPath, pack: packPath, index: indexPath, links: linksPath, isShortLived: true }]);
  const [found] = await packs.run('inspect', { oids: [commit] });
  if (found?.type !== 'commit') throw lacking();
  return {
    bytes: received.bytes,
    readTree: () => readTree(packs, commit),
    listSubmodules: () => listSubmodules(packs, commit),
    discard: () => quarantine.clear(),
  };
}

function lacking(): AppError {
  return new AppError('validation_failed', 'The git host did not send the commit that was asked for.');
}
