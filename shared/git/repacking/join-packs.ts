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
  return await writeStoredPack(
    database,
    await selectEverything(database, yieldToEventLoop),
    paths,
    links,
    yieldToEventLoop,
    signal,
  );
}

/**
 * How packs hang together with the rest when they are one; undefined when that is not known of each, or not simple. What
 * one of them needs comes after a root of its own, so it can be left out of the roots of all; and as no object comes
 * after itself, enough roots stay to reach everything from.
 */
function joinLinks(each: readonly (PackLinks | null)[], isWithin: (oid: string) => boolean): PackLinks | undefined {
  const known = each.filter((links) => links !== null);
  if (known.length < each.length) return undefined;
  const needed = new Set(known.flatMap(({ needs }) => needs));
  const roots = [...new Set(known.flatMap((links) => links.roots))].filter((root) => !needed.has(root));
  const needs = [...needed].filter((oid) => !isWithin(oid));
  return roots.length + needs.length <= mostLinks ? { roots, needs } : undefined;
}
