import { AppError } from '#shared/errors.ts';
import type { Snapshot } from '#shared/git/git-storage.ts';
import type { Quarantine } from '#shared/git/packs/files/quarantine.ts';
import type { PackLimits } from '#shared/git/packs/intake/pack-scanner.ts';
import { createPackTasks } from '#shared/git/repository/pinned-packs.ts';
import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import { listSubmodules, readTree } from '#shared/git/storage/git-reader.ts';
import type { ObjectId } from '#shared/ids.ts';

/** A snapshot to be received. */
export interface SnapshotRequest {
  limits: PackLimits;
  /** Receives the pack, which stays there. */
  quarantine: Quarantine;
  /** The commit that the pack must bring. */
  commit: ObjectId;
  /** The pack's bytes. */
  input: AsyncIterator<Uint8Array>;
  signal: AbortSignal;
}

/**
 * Receives a commit without its history into quarantine.
 * @throws GitFault when the pack is invalid; AppError validation_failed when it does not bring the commit
 */
export async function takeSnapshot(
  { workers, tolerated }: Pick<RepositoryAccess, 'workers' | 'tolerated'>,
  { limits, quarantine, commit, input, signal }: SnapshotRequest,
): Promise<Snapshot> {
  const { packPath, indexPath, linksPath } = quarantine;
  const request = { packPath, indexPath, linksPath, limits, withoutHistory: true as const, tolerated };
  const received = await workers.run('intake', { packs: [], request }, { input, signal });
  if (received === undefined) throw missingCommit();
  const packs = createPackTasks(workers, [
    { key: packPath, pack: packPath, index: indexPath, links: linksPath, isShortLived: true },
  ]);
  const [found] = await packs.run('inspect', { oids: [commit] });
  if (found?.type !== 'commit') throw missingCommit();
  return {
    bytes: received.bytes,
    readTree: () => readTree(packs, commit),
    listSubmodules: () => listSubmodules(packs, commit),
    discard: () => quarantine.clear(),
  };
}

function missingCommit(): AppError {
  return new AppError('validation_failed', 'The git host did not send the requested commit.');
}
