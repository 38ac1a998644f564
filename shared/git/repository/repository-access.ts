import type { Clock } from '#shared/clock.ts';
import type { TolerableFault } from '#shared/git/objects/tolerable-faults.ts';
import type { ListedPack, PackCatalog } from '#shared/git/packs/catalog/pack-catalog.ts';
import type { PackFiles } from '#shared/git/packs/files/pack-files.ts';
import type { PackLocation } from '#shared/git/packs/reading/open-pack.ts';
import type { RefDriver } from '#shared/git/refs/ref-driver.ts';
import type { WorkerPool } from '#shared/git/worker/worker-pool.ts';
import type { RepositoryId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';
import type { Log } from '#shared/log.ts';

/** What the servers and the reader share: where things are kept, and who does the heavy work. */
export interface RepositoryAccess {
  readonly refs: RefDriver;
  readonly catalog: PackCatalog;
  readonly files: PackFiles;
  readonly workers: WorkerPool;
  /** Holds each repository's quarantine. */
  readonly directory: string;
  readonly log: Log;
  readonly clock: Clock;
  /** Faults of objects that are let through. */
  readonly tolerated: readonly TolerableFault[];
}

/** Where packs are, for as long as it is not disposed of: `using held = await locatePacks(…)`. */
export interface LocatedPacks extends Disposable {
  readonly packs: PackLocation[];
}

/** Where the packs of a repository are at this moment, those that are to be removed left out; or those of `packs`. */
export async function locatePacks(
  { catalog, files, clock }: Pick<RepositoryAccess, 'catalog' | 'files' | 'clock'>,
  repositoryId: RepositoryId,
  packs?: readonly ListedPack[],
): Promise<LocatedPacks> {
  const listed = packs ?? (await catalog.listPacks(repositoryId)).filter((pack) => isVisible(pack, clock.now()));
  const located = await Promise.allSettled(listed.map(({ packId }) => files.locatePack(repositoryId, packId)));
  const locations: PackLocation[] = [];
  const releases: (() => void)[] = [];
  const problems: unknown[] = [];
  located.forEach((result, i) => {
    if (result.status === 'rejected') return problems.push(result.reason);
    const { release, ...location } = result.value;
    if (release !== undefined) releases.push(release);
    const unreachable = listed[i]?.unreachableSince !== undefined;
    return locations.push({ key: `${repositoryId}/${listed[i]?.packId}`, ...location, unreachable });
  });
  const held = {
    packs: locations,
    [Symbol.dispose]: () => {
      for (const release of releases) release();
    },
  };
  if (problems.length === 0) return held;
  held[Symbol.dispose]();
  throw problems[0];
}

function isVisible({ unreachableSince }: ListedPack, now: Date): boolean {
  return unreachableSince === undefined || now.getTime() - unreachableSince.getTime() < limits.packs.unreachableSeconds * 1000;
}
