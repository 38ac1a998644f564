import { GitFault } from '#shared/git/git-fault.ts';
import type { TreeEntry } from '#shared/git/git-storage.ts';
import { CommitGraph } from '#shared/git/object-graph/commit-graph.ts';
import { selectCommits } from '#shared/git/object-graph/commit-selection.ts';
import { type Inspection, inspectObjects } from '#shared/git/object-graph/inspect-objects.ts';
import { isAncestor } from '#shared/git/object-graph/is-ancestor.ts';
import { type Negotiation, negotiateFetch } from '#shared/git/object-graph/negotiation.ts';
import { type SelectionQuestion, selectObjects } from '#shared/git/object-graph/object-selection.ts';
import { readObject, type StoredObject } from '#shared/git/object-graph/read-object.ts';
import { readContents, readWholeTree } from '#shared/git/object-graph/read-tree.ts';
import { findShallow, type ShallowChange, type ShallowQuestion } from '#shared/git/object-graph/shallow.ts';
import { selectEverything, wantsEverything } from '#shared/git/object-graph/whole-packs.ts';
import type { CataloguedPack } from '#shared/git/packs/catalog/pack-catalog.ts';
import type { PackPaths } from '#shared/git/packs/files/pack-files.ts';
import type { PackIndexer } from '#shared/git/packs/intake/pack-indexer.ts';
import { type IntakeRequest, type IntakeResult, intakePack } from '#shared/git/packs/intake/pack-intake.ts';
import type { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';
import type { PackLocation } from '#shared/git/packs/reading/open-pack.ts';
import { copyPack } from '#shared/git/packs/writing/copy-pack.ts';
import { type PackForm, writePack } from '#shared/git/packs/writing/pack-writer.ts';
import { joinPacks } from '#shared/git/repacking/join-packs.ts';
import { type SeparateRequest, type Separation, separateObjects } from '#shared/git/repacking/separate-objects.ts';
import { withDatabase } from '#shared/git/worker/open-packs.ts';
import { createYieldToEventLoop } from '#shared/git/yield-to-event-loop.ts';
import type { ObjectId } from '#shared/ids.ts';

/** What a task uses to talk to the main thread. */
export interface TaskLink {
  input: AsyncIterable<Uint8Array>;
  /** Transfers the whole buffer of the chunk, which must belong to the chunk alone. */
  write(chunk: Uint8Array<ArrayBuffer>): Promise<void>;
  signal: AbortSignal;
}

/**
 * The tasks of a worker. Parameters and results are plain data.
 * @param indexer receives packs; its inflater serves all tasks
 */
export function createTasks(indexer: PackIndexer) {
  const inPacks = <T>(packs: readonly PackLocation[], use: (database: ObjectDatabase) => Promise<T>): Promise<T> =>
    withDatabase(packs, use, indexer.openInflater);
  return {
    /** See `intakePack`. */
    intake(
      params: { packs: readonly PackLocation[]; request: IntakeRequest },
      link: TaskLink,
    ): Promise<IntakeResult | undefined> {
      return inPacks(params.packs, (database) =>
        intakePack(link.input, params.request, database, createYieldToEventLoop(link.signal), indexer),
      );
    },

    /** See `inspectObjects`. */
    inspect(
      params: { packs: readonly PackLocation[]; oids: readonly string[] },
      _link: TaskLink,
    ): Promise<readonly (Inspection | undefined)[]> {
      return inPacks(params.packs, (database) => inspectObjects(database, params.oids, createYieldToEventLoop()));
    },

    /** For each pair, whether the first is an ancestor of the second. */
    ancestry(
      params: { packs: readonly PackLocation[]; pairs: readonly (readonly [string, string])[] },
      link: TaskLink,
    ): Promise<readonly boolean[]> {
      return inPacks(params.packs, async (database) => {
        const answers: boolean[] = [];
        for (const [ancestor, descendant] of params.pairs) {
          if (link.signal.aborted) throw new GitFault('the client has gone');
          answers.push(await isAncestor(database, ancestor, descendant, createYieldToEventLoop()));
        }
        return answers;
      });
    },

    /** Ids of the newest `most` commits that are reachable from `head` and not from `base`, newest first. */
    commits(
      { packs, base, head, most }: { packs: readonly PackLocation[]; base: ObjectId; head: ObjectId; most: number },
      link: TaskLink,
    ): Promise<ObjectId[]> {
      return inPacks(packs, async (database) => {
        const graph = new CommitGraph(database);
        const tip = graph.commitOf(head);
        const tips = tip === undefined ? [] : [tip];
        const known = { haves: [base], clientShallow: [], cutAfter: [], unshallow: [] };
        const { commits } = await selectCommits(graph, tips, known, createYieldToEventLoop(link.signal));
        return commits.slice(0, most).map(({ number }) => graph.hex(number) as ObjectId);
      });
    },

    /** See `negotiateFetch`. */
    negotiate(
      params: { packs: readonly PackLocation[] } & Parameters<typeof negotiateFetch>[1],
      _link: TaskLink,
    ): Promise<Negotiation> {
      return inPacks(params.packs, (database) => negotiateFetch(database, params, createYieldToEventLoop()));
    },

    /** See `findShallow`. */
    shallow(params: { packs: readonly PackLocation[] } & ShallowQuestion, _link: TaskLink): Promise<ShallowChange> {
      return inPacks(params.packs, (database) => findShallow(database, params, createYieldToEventLoop()));
    },

    /** Writes the pack that answers a fetch. */
    pack(params: { packs: readonly PackLocation[] } & SelectionQuestion & PackForm, link: TaskLink): Promise<void> {
      const yieldToEventLoop = createYieldToEventLoop(link.signal);
      const write = (chunk: Uint8Array<ArrayBuffer>): Promise<void> => link.write(chunk);
      return inPacks(reachable(params.packs), async (inReachable) => {
        if (params.offsetDeltas && wantsEverything(inReachable, params)) {
          const [only] = inReachable.packs;
          if (inReachable.packs.length === 1 && only !== undefined) return await copyPack(only, write);
          const contents = await selectEverything(inReachable, yieldToEventLoop);
          await writePack(inReachable, { contents, form: params, write, yieldToEventLoop });
          return undefined;
        }
        return await inPacks(params.packs, async (database) => {
          const contents = await selectObjects(database, params, yieldToEventLoop);
          await writePack(database, { contents, form: params, write, yieldToEventLoop });
        });
      });
    },

    /** See `joinPacks`. */
    join(params: { packs: readonly PackLocation[]; paths: PackPaths }, link: TaskLink): Promise<CataloguedPack> {
      return inPacks(params.packs, (database) => joinPacks(database, params.paths, createYieldToEventLoop(), link.signal));
    },

    /** See `separateObjects`. */
    separate(params: { packs: readonly PackLocation[]; request: SeparateRequest }, link: TaskLink): Promise<Separation> {
      return inPacks(params.packs, (database) =>
        inPacks(reachable(params.packs), (inReachable) =>
          separateObjects(database, inReachable, params.request, createYieldToEventLoop(), link.signal),
        ),
      );
    },

    /** See `readWholeTree`. */
    tree(params: { packs: readonly PackLocation[]; commit: string }, _link: TaskLink): Promise<TreeEntry[] | undefined> {
      return inPacks(params.packs, (database) => readWholeTree(database, params.commit, createYieldToEventLoop()));
    },

    /** See `readObject`. */
    object(
      params: { packs: readonly PackLocation[]; oid: string; longestBytes: number },
      _link: TaskLink,
    ): Promise<StoredObject | undefined> {
      return inPacks(params.packs, async (database) => readObject(database, params.oid, params.longestBytes));
    },

    /** See `readContents`. */
    contents(
      params: { packs: readonly PackLocation[]; oids: readonly string[]; bytes: number },
      _link: TaskLink,
    ): Promise<Uint8Array[]> {
      return inPacks(params.packs, (database) => readContents(database, params.oids, params.bytes, createYieldToEventLoop()));
    },
  } as const;
}

function reachable(packs: readonly PackLocation[]): PackLocation[] {
  return packs.filter(({ unreachable }) => unreachable !== true);
}

type Tasks = ReturnType<typeof createTasks>;
/** Name of a task. */
export type TaskName = keyof Tasks;
/** What a task gets. */
export type TaskParams<Name extends TaskName> = Parameters<Tasks[Name]>[0];
/** What a task returns. */
export type TaskResult<Name extends TaskName> = Awaited<ReturnType<Tasks[Name]>>;
