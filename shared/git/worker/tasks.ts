import { GitFault } from '#shared/git/git-fault.ts';
import { joinPacks } from '#shared/git/maintenance/join-packs.ts';
import { type SeparateRequest, type Separation, separateObjects } from '#shared/git/maintenance/separate-objects.ts';
import { type Inspection, inspectObjects, isAncestor } from '#shared/git/objects/history.ts';
import { readContents, readWholeTree } from '#shared/git/objects/read-tree.ts';
import type { PackLocation } from '#shared/git/packs/open-pack.ts';
import type { CataloguedPack } from '#shared/git/packs/pack-catalog.ts';
import type { FinishedPack } from '#shared/git/packs/pack-files.ts';
import { type IntakeRequest, type IntakeResult, intakePack } from '#shared/git/packs/pack-intake.ts';
import type { TreeEntry } from '#shared/git/repository.ts';
import { type Negotiation, negotiateFetch } from '#shared/git/upload-pack/negotiation.ts';
import { type SelectionQuestion, selectObjects } from '#shared/git/upload-pack/object-selection.ts';
import { type PackForm, writePack } from '#shared/git/upload-pack/pack-writer.ts';
import { findShallow, type ShallowChange, type ShallowQuestion } from '#shared/git/upload-pack/shallow.ts';
import { copyPack, selectEverything, wantsEverything } from '#shared/git/upload-pack/whole-packs.ts';
import { createBreather } from '#shared/git/worker/breather.ts';
import { withDatabase } from '#shared/git/worker/open-packs.ts';

/** A task's side of its streams. */
export interface TaskLink {
  input: AsyncIterable<Uint8Array>;
  /** The chunk's whole buffer is transferred: it must be one of its own. */
  write(chunk: Uint8Array<ArrayBuffer>): Promise<void>;
  signal: AbortSignal;
}

/** Everything a worker can be asked to do. Parameters and results are plain data. */
export const tasks = {
  intake(params: { packs: readonly PackLocation[]; request: IntakeRequest }, link: TaskLink): Promise<IntakeResult | undefined> {
    return withDatabase(params.packs, (database) =>
      intakePack(link.input, params.request, database, createBreather(link.signal)),
    );
  },

  /** Type of each object, and what it peels to. */
  inspect(
    params: { packs: readonly PackLocation[]; oids: readonly string[] },
    _link: TaskLink,
  ): Promise<readonly (Inspection | undefined)[]> {
    return withDatabase(params.packs, (database) => inspectObjects(database, params.oids, createBreather()));
  },

  ancestry(
    params: { packs: readonly PackLocation[]; pairs: readonly (readonly [string, string])[] },
    link: TaskLink,
  ): Promise<readonly boolean[]> {
    return withDatabase(params.packs, async (database) => {
      const answers: boolean[] = [];
      for (const [ancestor, descendant] of params.pairs) {
        if (link.signal.aborted) throw new GitFault('the client has gone');
        answers.push(await isAncestor(database, ancestor, descendant, createBreather()));
      }
      return answers;
    });
  },

  negotiate(
    params: { packs: readonly PackLocation[] } & Parameters<typeof negotiateFetch>[1],
    _link: TaskLink,
  ): Promise<Negotiation> {
    return withDatabase(params.packs, (database) => negotiateFetch(database, params, createBreather()));
  },

  shallow(params: { packs: readonly PackLocation[] } & ShallowQuestion, _link: TaskLink): Promise<ShallowChange> {
    return withDatabase(params.packs, (database) => findShallow(database, params, createBreather()));
  },

  pack(params: { packs: readonly PackLocation[] } & SelectionQuestion & PackForm, link: TaskLink): Promise<void> {
    const breathe = createBreather(link.signal);
    const write = (chunk: Uint8Array<ArrayBuffer>): Promise<void> => link.write(chunk);
    return withDatabase(reachable(params.packs), async (inReachable) => {
      if (params.offsetDeltas && wantsEverything(inReachable, params)) {
        const [only] = inReachable.packs;
        if (inReachable.packs.length === 1 && only !== undefined) return await copyPack(only, write);
        await writePack(inReachable, await selectEverything(inReachable, breathe), params, write, breathe);
        return undefined;
      }
      return await withDatabase(params.packs, async (database) => {
        await writePack(database, await selectObjects(database, params, breathe), params, write, breathe);
      });
    });
  },

  join(params: { packs: readonly PackLocation[]; paths: FinishedPack }, link: TaskLink): Promise<CataloguedPack> {
    return withDatabase(params.packs, (database) => joinPacks(database, params.paths, createBreather(), link.signal));
  },

  separate(params: { packs: readonly PackLocation[]; request: SeparateRequest }, link: TaskLink): Promise<Separation> {
    return withDatabase(params.packs, (database) =>
      withDatabase(reachable(params.packs), (inReachable) =>
        separateObjects(database, inReachable, params.request, createBreather(), link.signal),
      ),
    );
  },

  tree(params: { packs: readonly PackLocation[]; commit: string }, _link: TaskLink): Promise<TreeEntry[] | undefined> {
    return withDatabase(params.packs, (database) => readWholeTree(database, params.commit, createBreather()));
  },

  contents(
    params: { packs: readonly PackLocation[]; oids: readonly string[]; bytes: number },
    _link: TaskLink,
  ): Promise<Uint8Array[]> {
    return withDatabase(params.packs, (database) => readContents(database, params.oids, params.bytes, createBreather()));
  },
} as const;

function reachable(packs: readonly PackLocation[]): PackLocation[] {
  return packs.filter(({ unreachable }) => unreachable !== true);
}

export type TaskName = keyof typeof tasks;
export type TaskParams<Name extends TaskName> = Parameters<(typeof tasks)[Name]>[0];
export type TaskResult<Name extends TaskName> = Awaited<ReturnType<(typeof tasks)[Name]>>;
