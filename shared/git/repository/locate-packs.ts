import type { ListedPack } from '#shared/git/packs/catalog/pack-catalog.ts';
import type { PackLocation } from '#shared/git/packs/reading/open-pack.ts';
import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import type { RepositoryId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';

/** Packs that can be read until this is disposed of: `using located = await locatePacks(…)`. */
export interface LocatedPacks extends Disposable {
  readonly packs: PackLocation[];
}

/**
 * Finds the files of a repository's packs, and brings them to this machine where the driver has to.
 *
 * @param packs default: all packs of the repository but those whose unreachable objects are about to be removed
 */
export async function locatePacks(
  { catalog, files, clock }: Pick<RepositoryAccess, 'catalog' | 'files' | 'clock'>,
  repositoryId: RepositoryId,
  packs?: readonly ListedPack[],
): Promise<LocatedPacks> {
  const listed = packs ?? (await catalog.listPacks(repositoryId)).filter((pack) => isVisible(pack, clock.now()));
  const results = await Promise.allSettled(listed.map(({ packId }) => files.locatePack(repositoryId, packId)));
  const locations: PackLocation[] = [];
  const releases: (() => void)[] = [];
  const problems: unknown[] = [];
  results.forEach((result, i) => {
    if (result.status === 'rejected') return problems.push(result.reason);
    const { release, ...location } = result.value;
    if (release !== undefined) releases.push(release);
    const unreachable = listed[i]?.unreachableSince !== undefined;
    return locations.push({ key: `${repositoryId}/${listed[i]?.packId}`, ...location, unreachable });
  });
  const located = {
    packs: locations,
    [Symbol.dispose]: () => {
      for (const release of releases) release();
    },
  };
  if (problems.length === 0) return located;
  located[Symbol.dispose]();
  throw problems[0];
}

function isVisible({ unreachableSince }: ListedPack, now: Date): boolean {
  return unreachableSince === undefined || now.getTime() - unreachableSince.getTime() < limits.packs.unreachableSeconds * 1000;
}
