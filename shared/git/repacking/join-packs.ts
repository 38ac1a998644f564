import { selectEverything } from '#shared/git/object-graph/whole-packs.ts';
import type { CataloguedPack } from '#shared/git/packs/catalog/pack-catalog.ts';
import type { PackPaths } from '#shared/git/packs/files/pack-files.ts';
import { mostLinks, type PackLinks } from '#shared/git/packs/format/pack-links.ts';
import type { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';
import { writeStoredPack } from '#shared/git/repacking/stored-pack.ts';
import type { YieldToEventLoop } from '#shared/git/yield-to-event-loop.ts';

/** Writes one pack with all objects of the database's packs, each once. */
export async function joinPacks(
  database: ObjectDatabase,
  paths: PackPaths,
  yieldToEventLoop: YieldToEventLoop,
  signal: AbortSignal,
): Promise<CataloguedPack> {
  const links = joinLinks(
    database.packs.map((pack) => pack.links),
    (oid) => database.find(Buffer.from(oid, 'hex')) !== undefined,
  );
  const contents = await selectEverything(database, yieldToEventLoop);
  return await writeStoredPack(database, { contents, paths, links, yieldToEventLoop, signal });
}

/**
 * The links of packs that become one; undefined when those of one pack are not known, or when there are too many. A commit that
 * one pack needs is reachable from a root of that pack, so it is no root of the joined pack. No object is reachable from itself,
 * so the roots that remain reach everything.
 */
function joinLinks(each: readonly (PackLinks | null)[], isWithin: (oid: string) => boolean): PackLinks | undefined {
  const known = each.filter((links) => links !== null);
  if (known.length < each.length) return undefined;
  const needed = new Set(known.flatMap(({ needs }) => needs));
  const roots = [...new Set(known.flatMap((links) => links.roots))].filter((root) => !needed.has(root));
  const needs = [...needed].filter((oid) => !isWithin(oid));
  return roots.length + needs.length <= mostLinks ? { roots, needs } : undefined;
}
