import type { SelectionQuestion } from '#shared/git/object-graph/object-selection.ts';
import { OidTable } from '#shared/git/objects/oid-table.ts';
import type { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';
import type { OpenPack } from '#shared/git/packs/reading/open-pack.ts';
import type { PackContents } from '#shared/git/packs/writing/pack-contents.ts';
import type { YieldToEventLoop } from '#shared/git/yield-to-event-loop.ts';

/**
 * Whether the wants reach all objects of all packs. Decided from `PackLinks`, without a walk: a pack is reachable as a whole when
 * its roots are, and then so are the commits that it needs from other packs. True for most fresh clones.
 *
 * @param database has all objects that its objects refer to
 */
export function wantsEverything(
  database: ObjectDatabase,
  { wants, haves, clientShallow, cutAfter, filter }: SelectionQuestion,
): boolean {
  if (haves.length > 0 || clientShallow.length > 0 || cutAfter.length > 0 || filter.kind !== 'none') return false;
  if (wants.some((oid) => database.find(Buffer.from(oid, 'hex')) === undefined)) return false;
  const reachable = new Set<string>(wants);
  let open: readonly OpenPack[] = database.packs;
  for (;;) {
    const rest = open.filter(({ links }) => {
      const whole = links?.roots.every((root) => reachable.has(root)) === true;
      if (whole) for (const commit of links.needs) reachable.add(commit);
      return !whole;
    });
    if (rest.length === 0) return true;
    if (rest.length === open.length) return false;
    open = rest.toReversed();
  }
}

/** Every object of every pack, each once. */
export async function selectEverything(database: ObjectDatabase, yieldToEventLoop: YieldToEventLoop): Promise<PackContents> {
  const table = new OidTable(database.packs.reduce((count, { index }) => count + index.objectCount, 0));
  for (const { index } of database.packs) {
    for (let position = 0; position < index.objectCount; position++) {
      table.add(index.oidAt(position));
      const pause = yieldToEventLoop();
      if (pause !== undefined) await pause;
    }
  }
  return { table, send: Array.from({ length: table.size }, (_, number) => number), has: () => false };
}
