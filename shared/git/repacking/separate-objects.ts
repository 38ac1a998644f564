import { CommitGraph, type CommitNode } from '#shared/git/object-graph/commit-graph.ts';
import { selectCommits } from '#shared/git/object-graph/commit-selection.ts';
import { type SelectionQuestion, selectObjects } from '#shared/git/object-graph/object-selection.ts';
import { wantsEverything } from '#shared/git/object-graph/whole-packs.ts';
import { objectTypes } from '#shared/git/objects/object-type.ts';
import { OidTable } from '#shared/git/objects/oid-table.ts';
import type { CataloguedPack } from '#shared/git/packs/catalog/pack-catalog.ts';
import type { PackPaths } from '#shared/git/packs/files/pack-files.ts';
import { mostLinks, type PackLinks } from '#shared/git/packs/format/pack-links.ts';
import type { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';
import type { OpenPack } from '#shared/git/packs/reading/open-pack.ts';
import { PackLookup } from '#shared/git/packs/reading/pack-lookup.ts';
import type { PackContents } from '#shared/git/packs/writing/pack-contents.ts';
import { writeStoredPack } from '#shared/git/repacking/stored-pack.ts';
import type { YieldToEventLoop } from '#shared/git/yield-to-event-loop.ts';
import type { ObjectId } from '#shared/ids.ts';

export interface SeparateRequest {
  /** What all objects to keep are reachable from. Ids of nothing that is stored are left aside. */
  roots: readonly ObjectId[];
  /** Paths of files to make. */
  reachable: PackPaths;
  unreachable: PackPaths;
  /** Whether what packs say of themselves will do where it says that all is reachable. Not before something is removed. */
  trustLinks: boolean;
}

export interface Separation {
  /** Positions of packs that what was written stands in for. */
  replaced: number[];
  /** Undefined where there is nothing of the kind. */
  reachable: CataloguedPack | undefined;
  unreachable: CataloguedPack | undefined;
}

/**
 * Parts what is reachable from what is not: packs that hold both are written anew as one of each kind. Afterwards the
 * first kind and the packs left alone hold exactly what is reachable, whatever was found unreachable before included.
 *
 * @param database all packs, those of `inReachable` first; the others hold what was found unreachable before
 */
export async function separateObjects(
  database: ObjectDatabase,
  inReachable: ObjectDatabase,
  { roots, reachable, unreachable, trustLinks }: SeparateRequest,
  yieldToEventLoop: YieldToEventLoop,
  signal: AbortSignal,
): Promise<Separation> {
  const stored = roots.filter((oid) => database.find(Buffer.from(oid, 'hex')) !== undefined);
  const question = wholeHistory(stored);
  if (trustLinks && wantsEverything(inReachable, question)) return { replaced: [], reachable: undefined, unreachable: undefined };

  const kept = await selectObjects(database, question, yieldToEventLoop);
  const mixed = await findMixed(inReachable, kept.table, yieldToEventLoop);
  const clean = inReachable.packs.filter((pack) => !mixed.has(pack));
  const toKeep = new ObjectCollector(yieldToEventLoop);
  const toPart = new ObjectCollector(yieldToEventLoop);
  const inClean = new PackLookup(clean);
  await toKeep.add(kept.table, (oid) => inClean.find(oid, 0) === undefined);
  for (const pack of mixed) await toPart.addPack(pack, (oid) => kept.table.find(oid) < 0);
  // What it needs stays as long as it does, also where that was found unreachable earlier.
  if (database.packs.length > inReachable.packs.length && toPart.table.size > 0) {
    const needed = await selectObjects(database, wholeHistory(toPart.hexes()), yieldToEventLoop);
    await toPart.add(needed.table, (oid) => kept.table.find(oid) < 0);
  }
  const links = await findLinks(database, stored, clean, yieldToEventLoop);
  return {
    replaced: [...mixed].map((pack) => database.packs.indexOf(pack)),
    reachable: toKeep.isEmpty
      ? undefined
      : await writeStoredPack(database, toKeep.selection(), reachable, links, yieldToEventLoop, signal),
    unreachable: toPart.isEmpty
      ? undefined
      : await writeStoredPack(database, toPart.selection(), unreachable, undefined, yieldToEventLoop, signal),
  };
}

function wholeHistory(wants: readonly ObjectId[]): SelectionQuestion {
  return { wants, haves: [], clientShallow: [], unshallow: [], cutAfter: [], filter: { kind: 'none' }, tags: [] };
}

/** Packs with at least one object that is not in the table. */
async function findMixed({ packs }: ObjectDatabase, kept: OidTable, yieldToEventLoop: YieldToEventLoop): Promise<Set<OpenPack>> {
  const mixed = new Set<OpenPack>();
  for (const pack of packs) {
    for (let position = 0; position < pack.index.objectCount && !mixed.has(pack); position++) {
      if (kept.find(pack.index.oidAt(position)) < 0) mixed.add(pack);
      const pause = yieldToEventLoop();
      if (pause !== undefined) await pause;
    }
  }
  return mixed;
}

/** Objects gathered for a pack. */
class ObjectCollector {
  readonly table = new OidTable(4096);
  readonly #yieldToEventLoop: YieldToEventLoop;

  constructor(yieldToEventLoop: YieldToEventLoop) {
    this.#yieldToEventLoop = yieldToEventLoop;
  }

  get isEmpty(): boolean {
    return this.table.size === 0;
  }

  async add(from: OidTable, wanted: (oid: Buffer) => boolean): Promise<void> {
    await this.#take(from.size, (number) => from.oid(number), wanted);
  }

  async addPack({ index }: OpenPack, wanted: (oid: Buffer) => boolean): Promise<void> {
    await this.#take(index.objectCount, (position) => index.oidAt(position), wanted);
  }

  hexes(): ObjectId[] {
    return Array.from({ length: this.table.size }, (_, number) => this.table.oid(number).toString('hex') as ObjectId);
  }

  selection(): PackContents {
    return { table: this.table, send: Array.from({ length: this.table.size }, (_, number) => number), has: () => false };
  }

  async #take(count: number, oidOf: (at: number) => Buffer, wanted: (oid: Buffer) => boolean): Promise<void> {
    for (let at = 0; at < count; at++) {
      const oid = oidOf(at);
      if (wanted(oid)) this.table.add(oid);
      const pause = this.#yieldToEventLoop();
      if (pause !== undefined) await pause;
    }
  }
}

/**
 * Of the pack of what is reachable: all of it is when the outermost roots are, and then so are the roots of the packs
 * left alone.
 */
async function findLinks(
  database: ObjectDatabase,
  stored: readonly ObjectId[],
  clean: readonly OpenPack[],
  yieldToEventLoop: YieldToEventLoop,
): Promise<PackLinks | undefined> {
  const graph = new CommitGraph(database);
  const below: CommitNode[] = [];
  for (const oid of stored) {
    const commit = graph.commitOf(oid);
    if (commit === undefined) continue;
    const isItself = graph.hex(commit.number) === oid;
    const next = isItself ? commit.parents.map((parent) => graph.node(parent)) : [commit];
    below.push(...next.filter((node) => node !== undefined));
  }
  const { commits } = await selectCommits(graph, below, wholeHistory([]), yieldToEventLoop);
  const covered = new Set(commits.map(({ number }) => graph.hex(number)));
  const roots = new Set<string>(stored.filter((oid) => !covered.has(oid)));
  const cleanRoots = clean.flatMap(({ links }) => links?.roots ?? []);
  const needs = cleanRoots.filter((oid) => !roots.has(oid) && database.readType(Buffer.from(oid, 'hex')) === objectTypes.commit);
  return roots.size + needs.length <= mostLinks ? { roots: [...roots], needs } : undefined;
}
