import type { Db } from '#shared/database/db.ts';
import { secondsPerHour } from '#shared/durations.ts';
import type { GarbageFacts, Ref } from '#shared/git/git-storage.ts';
import { type NewPack, pathsOf, replacePacks } from '#shared/git/maintenance/replace-packs.ts';
import type { ListedPack } from '#shared/git/packs/catalog/pack-catalog.ts';
import { openQuarantine } from '#shared/git/packs/files/quarantine.ts';
import { locatePacks } from '#shared/git/repository/locate-packs.ts';
import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';

/** How often it is tried when pushes come in between. */
const attempts = 3;
/** Objects are removed this much later than readers stop seeing them: a reader that found them before is done by then. */
const marginSeconds = secondsPerHour;

/** See `GitMaintenance.collectGarbage`. */
export async function collectGarbage(
  access: RepositoryAccess,
  repositoryId: RepositoryId,
  readRoots: () => Promise<readonly ObjectId[]>,
  signal: AbortSignal,
): Promise<GarbageFacts | undefined> {
  for (let left = attempts; left > 0; left--) {
    const facts = await tryToCollect(access, repositoryId, readRoots, signal);
    if (facts !== undefined) return facts;
  }
  return undefined;
}

/** Undefined when a push came in between. */
async function tryToCollect(
  access: RepositoryAccess,
  repositoryId: RepositoryId,
  readRoots: () => Promise<readonly ObjectId[]>,
  signal: AbortSignal,
): Promise<GarbageFacts | undefined> {
  const { catalog, refs, workers, clock } = access;
  // The order matters: a pack that is added after this changes the list, which is compared later; and an object that a ref takes
  // over from a root is seen in at least one of them.
  const listed = await catalog.listPacks(repositoryId);
  const wanted = await readRoots();
  const named = await refs.listRefs(repositoryId);
  const now = clock.now();
  const objects = listed.reduce((count, { objectCount }) => count + objectCount, 0);
  if (objects > limits.packs.objects) {
    access.log.warn('A repository is too large to look for unreachable objects.', { repositoryId, objects });
    return { unreachable: 0, removed: 0, nextAt: undefined };
  }
  const reachable = await openQuarantine(access.directory, repositoryId);
  const unreachable = await openQuarantine(access.directory, repositoryId);
  try {
    using located = await locatePacks(access, repositoryId, listed);
    const roots = [...new Set([...wanted, ...named.map(({ oid }) => oid)])];
    const expired = listed.filter((pack) => isExpired(pack, now));
    const paths = { reachable: pathsOf(reachable), unreachable: pathsOf(unreachable) };
    const request = { roots, ...paths, trustLinks: expired.length === 0 };
    const separation = await workers.run('separate', { packs: located.packs, request }, { signal });
    const replaced = separation.replaced.flatMap((position) => listed[position] ?? []);
    const add: NewPack[] = [];
    if (separation.reachable !== undefined) add.push({ pack: separation.reachable, files: reachable });
    if (separation.unreachable !== undefined)
      add.push({ pack: separation.unreachable, files: unreachable, unreachableSince: now });
    const retire = [...replaced, ...expired].map(({ packId }) => packId);
    const settled =
      (add.length === 0 && retire.length === 0) ||
      (await replacePacks(access, repositoryId, {
        add,
        retire,
        isStillValid: (db) => isUnchanged(access, db, repositoryId, listed, named),
      }));
    if (!settled) return undefined;
    const waiting = listed.flatMap((pack) => (expired.includes(pack) ? [] : (pack.unreachableSince ?? [])));
    if (separation.unreachable !== undefined) waiting.push(now);
    const [oldest] = waiting.toSorted((a, b) => a.getTime() - b.getTime());
    return {
      unreachable: separation.unreachable?.objectCount ?? 0,
      removed: expired.reduce((count, { objectCount }) => count + objectCount, 0),
      nextAt: oldest === undefined ? undefined : removalTime(oldest),
    };
  } finally {
    await reachable.clear();
    await unreachable.clear();
  }
}

function removalTime(unreachableSince: Date): Date {
  return new Date(unreachableSince.getTime() + (limits.packs.unreachableSeconds + marginSeconds) * 1000);
}

function isExpired({ unreachableSince }: ListedPack, now: Date): boolean {
  return unreachableSince !== undefined && removalTime(unreachableSince) <= now;
}

/** Whether no pack was added, replaced or reinstated, and no ref has moved. */
async function isUnchanged(
  { catalog, refs }: RepositoryAccess,
  db: Db,
  repositoryId: RepositoryId,
  listed: readonly ListedPack[],
  named: readonly Ref[],
): Promise<boolean> {
  const packs = await catalog.listPacks(repositoryId, db);
  const state = ({ packId, unreachableSince }: ListedPack): string => `${packId} ${unreachableSince?.toISOString()}`;
  if (packs.map(state).join() !== listed.map(state).join()) return false;
  const now = await refs.listRefs(repositoryId, db);
  return now.length === named.length && now.every(({ name, oid }, i) => named[i]?.name === name && named[i].oid === oid);
}
