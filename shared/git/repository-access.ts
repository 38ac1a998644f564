import type { PackLocation } from '#shared/git/packs/open-pack.ts';
import type { PackCatalog } from '#shared/git/packs/pack-catalog.ts';
import type { PackFiles } from '#shared/git/packs/pack-files.ts';
import type { StoredRefs } from '#shared/git/refs/memory-refs.ts';
import type { WorkerPool } from '#shared/git/worker/worker-pool.ts';
import type { RepositoryId } from '#shared/ids.ts';
import type { Log } from '#shared/log.ts';

/** What the servers and the reader share: where things are kept, and who does the heavy work. */
export interface RepositoryAccess {
  readonly refs: StoredRefs;
  readonly catalog: PackCatalog;
  readonly files: PackFiles;
  readonly workers: WorkerPool;
  /** Holds each repository's quarantine. */
  readonly directory: string;
  readonly log: Log;
}

/** Where packs are, for as long as it is not disposed of: `using held = await locatePacks(…)`. */
export interface LocatedPacks extends Disposable {
  readonly packs: PackLocation[];
}

/** Where the packs of a repository are at this moment. */
export async function locatePacks({ catalog, files }: RepositoryAccess, repositoryId: RepositoryId): Promise<LocatedPacks> {
  const listed = await catalog.listPacks(repositoryId);
  const located = await Promise.allSettled(listed.map(({ packId }) => files.locatePack(repositoryId, packId)));
  const packs: PackLocation[] = [];
  const releases: (() => void)[] = [];
  const problems: unknown[] = [];
  located.forEach((result, i) => {
    if (result.status === 'rejected') return problems.push(result.reason);
    const { release, ...location } = result.value;
    if (release !== undefined) releases.push(release);
    return packs.push({ key: `${repositoryId}/${listed[i]?.packId}`, ...location });
  });
  const held = {
    packs,
    [Symbol.dispose]: () => {
      for (const release of releases) release();
    },
  };
  if (problems.length === 0) return held;
  held[Symbol.dispose]();
  throw problems[0];
}
