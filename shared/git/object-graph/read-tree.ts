import { GitFault } from '#shared/git/git-fault.ts';
import type { TreeEntry } from '#shared/git/git-storage.ts';
import { CommitGraph } from '#shared/git/object-graph/commit-graph.ts';
import { objectTypes } from '#shared/git/objects/object-type.ts';
import { modes, TreeCursor } from '#shared/git/objects/tree.ts';
import type { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';
import type { EntryLocation } from '#shared/git/packs/reading/pack-lookup.ts';
import type { YieldToEventLoop } from '#shared/git/yield-to-event-loop.ts';
import type { ObjectId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';

const kinds = new Map<number, TreeEntry['kind']>([
  [modes.executable, 'executable'],
  [modes.symlink, 'symlink'],
  [modes.submodule, 'submodule'],
]);

/**
 * The tree of a commit without its directories, in the order of git's index. Undefined when there is no such commit.
 * @throws GitFault when the tree is beyond `limits.tree`
 */
export async function readWholeTree(
  database: ObjectDatabase,
  commit: string,
  yieldToEventLoop: YieldToEventLoop,
): Promise<TreeEntry[] | undefined> {
  const root = new CommitGraph(database).commitOf(commit)?.tree;
  if (root === undefined) return undefined;
  const entries: TreeEntry[] = [];
  const count = createCounter();
  const stack = [{ cursor: openTree(database, root), prefix: '' }];
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    const pause = yieldToEventLoop();
    if (pause !== undefined) await pause;
    const { cursor, prefix } = top;
    if (!cursor.next()) {
      stack.pop();
      continue;
    }
    const path = prefix + cursor.name();
    count(path);
    if (cursor.mode === modes.tree) stack.push({ cursor: openTree(database, cursor.oid()), prefix: `${path}/` });
    else entries.push({ path, kind: kinds.get(cursor.mode) ?? 'file', oid: cursor.oid().toString('hex') as ObjectId });
  }
  return entries;
}

/**
 * A function to call for each path, which throws beyond the limits. Sizes of objects are no limit: one directory can be in many
 * places, and so can the directories in it.
 */
function createCounter(): (path: string) => void {
  const { entries, pathCharacters, characters } = limits.tree;
  const reject = (what: string): never => {
    throw new GitFault(`it has ${what}, which is the limit here`);
  };
  let [paths, together] = [0, 0];
  return ({ length }) => {
    paths++;
    together += length;
    if (paths > entries) reject(`more than ${entries} files and directories`);
    if (length > pathCharacters) reject(`a path of more than ${pathCharacters} characters`);
    if (together > characters) reject(`paths of more than ${characters} characters together`);
  };
}

function openTree(database: ObjectDatabase, oid: Buffer): TreeCursor {
  const object = database.read(oid);
  if (object?.type !== objectTypes.tree) throw new Error(`tree ${oid.toString('hex')} is missing`);
  return new TreeCursor(object.data);
}

const nothing = new Uint8Array(0);

/** Contents in the order of the ids, as many as fit into `bytes`, but at least one. Ends before an object that does not exist. */
export async function readContents(
  database: ObjectDatabase,
  oids: readonly string[],
  bytes: number,
  yieldToEventLoop: YieldToEventLoop,
): Promise<Uint8Array[]> {
  const wanted: { at: number; location: EntryLocation }[] = [];
  let total = 0;
  for (const [at, oid] of oids.entries()) {
    const location = database.find(Buffer.from(oid, 'hex'));
    if (location === undefined) break;
    total += database.readSize(location);
    if (at > 0 && total > bytes) break;
    wanted.push({ at, location });
  }
  // One pack after the other, each from front to back: the next object is mostly in the part of the file that was just read.
  const packs = new Map(database.packs.map((pack, i) => [pack, i]));
  wanted.sort(
    (a, b) => (packs.get(a.location.pack) ?? 0) - (packs.get(b.location.pack) ?? 0) || a.location.offset - b.location.offset,
  );
  const contents: Uint8Array[] = Array.from(wanted, () => nothing);
  for (const { at, location } of wanted) {
    const pause = yieldToEventLoop();
    if (pause !== undefined) await pause;
    contents[at] = database.readAt(location).data;
  }
  return contents;
}
