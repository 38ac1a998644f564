import type { RepackFacts } from '#shared/git/git-storage.ts';
import { choosePacksToJoin } from '#shared/git/maintenance/geometry.ts';
import { pathsOf, replacePacks } from '#shared/git/maintenance/replace-packs.ts';
import { openQuarantine } from '#shared/git/packs/files/quarantine.ts';
import { locatePacks } from '#shared/git/repository/locate-packs.ts';
import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import type { RepositoryId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';

const nothing: RepackFacts = { packs: 0, objects: 0, bytes: 0 };

/** See `GitMaintenance.repack`. */
export async function repack(access: RepositoryAccess, repositoryId: RepositoryId, signal: AbortSignal): Promise<RepackFacts> {
  const listed = await access.catalog.listPacks(repositoryId);
  const reachable = listed.filter(({ unreachableSince }) => unreachableSince === undefined);
  const chosen = new Set(choosePacksToJoin(reachable, limits.packs.objects));
  // In the order of the list, the oldest first: of two copies of an object the older one is used.
  const joined = reachable.filter((pack) => chosen.has(pack));
  if (joined.length === 0) return nothing;
  const quarantine = await openQuarantine(access.directory, repositoryId);
  try {
    using located = await locatePacks(access, repositoryId, joined);
    const pack = await access.workers.run('join', { packs: located.packs, paths: pathsOf(quarantine) }, { signal });
    const retire = joined.map(({ packId }) => packId);
    const replaced = await replacePacks(access, repositoryId, {
      add: [{ pack, files: quarantine }],
      retire,
      // Another process may have joined some of them, or separated unreachable objects.
      async isStillValid(db) {
        const now = await access.catalog.listPacks(repositoryId, db);
        const stillThere = new Set(now.flatMap(({ packId, unreachableSince }) => (unreachableSince === undefined ? packId : [])));
        return retire.every((packId) => stillThere.has(packId));
      },
    });
    return replaced ? { packs: retire.length, objects: pack.objectCount, bytes: pack.bytes } : nothing;
  } finally {
    await quarantine.clear();
  }
}
