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

/** Plain data, which can be sent to a thread. */
export interface SeparateRequest {
  /** All objects reachable from these are kept together. Ids of objects that are not stored are ignored. */
  roots: readonly ObjectId[];
  /** Of the files to create. */
  reachable: PackPaths;
  unreachable: PackPaths;
  /** Whether `PackLinks` that say that everything is reachable are proof enough. They are not when objects are about to be removed. */
  trustLinks: boolean;
}

/** What was written in place of what. */
export interface Separation {
  /** Positions of the packs that the new packs replace. */
  replaced: number[];
  /** Undefined when there are no such objects to write. */
  reachable: CataloguedPack | undefined;
  unreachable: CataloguedPack | undefined;
}

/**
 * Separates reachable objects from unreachable ones. Packs that hold both are replaced by one pack of each kind. Afterwards the
 * new reachable pack and the packs that were not replaced hold exactly the reachable objects, including those that were found
 * unreachable before and are reachable again.
 *
 * @param database all packs: those of `inReachable` first, then those whose objects were found unreachable before
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

  const found = await selectObjects(database, question, yieldToEventLoop);
  const mixed = await findMixed(inReachable, found.table, yieldToEventLoop);
  const clean = inReachable.packs.filter((pack) => !mixed.has(pack));
  const kept = new ObjectCollector(yieldToEventLoop);
  const separated = new ObjectCollector(yieldToEventLoop);
  const inClean = new PackLookup(clean);
  await kept.add(found.table, (oid) => inClean.find(oid, 0) === undefined);
  for (const pack of mixed) await separated.addPack(pack, (oid) => found.table.find(oid) < 0);
  // What these objects refer to stays as long as they do, even if it was found unreachable earlier.
  if (database.packs.length > inReachable.packs.length && separated.table.size > 0) {
    const needed = await selectObjects(database, wholeHistory(separated.hexes()), yieldToEventLoop);
    await separated.add(needed.table, (oid) => found.table.find(oid) < 0);
  }
  const links = await findLinks(database, stored, clean, yieldToEventLoop);
  return {
    replaced: [...mixed].map((pack) => database.packs.indexOf(pack)),
    reachable: kept.isEmpty
      ? undefined
      : await writeStoredPack(database, { contents: kept.contents(), paths: reachable, links, yieldToEventLoop, signal }),
    unreachable: separated.isEmpty
      ? undefined
      : await writeStoredPack(database, {
          contents: separated.contents(),
          paths: unreachable,
          links: undefined,
          yieldToEventLoop,
          signal,
        }),
  };
}

function wholeHistory(wants: readonly ObjectId[]): SelectionQuestion {
  return { wants, haves: [], clientShallow: [], unshallow: [], cutAfter: [], filter: { kind: 'none' }, tags: [] };
}

/** Packs with at least one object that is not reachable. */
async function findMixed(
  { packs }: ObjectDatabase,
  reachable: OidTable,
  yieldToEventLoop: YieldToEventLoop,
): Promise<Set<OpenPack>> {
  const mixed = new Set<OpenPack>();
  for (const pack of packs) {
    for (let position = 0; position < pack.index.objectCount && !mixed.has(pack); position++) {
      if (reachable.find(pack.index.oidAt(position)) < 0) mixed.add(pack);
      const pause = yieldToEventLoop();
      if (pause !== undefined) await pause;
    }
  }
  return mixed;
}

/** Collects the objects of a new pack. */
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

  contents(): PackContents {
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
 * The links of the new reachable pack. Everything in it is reachable from the roots that no other root reaches, and so are the
 * roots of the packs that were not replaced.
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
