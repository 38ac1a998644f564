import { objectTypes } from '#shared/git/objects/object-type.ts';
import { modes, TreeCursor } from '#shared/git/objects/tree.ts';
import type { ObjectDatabase } from '#shared/git/packs/object-database.ts';
import type { TreeEntry } from '#shared/git/repository.ts';
import { CommitGraph } from '#shared/git/upload-pack/commit-graph.ts';
import type { ObjectId } from '#shared/ids.ts';

type Breathe = () => Promise<void> | undefined;

const kinds = new Map<number, TreeEntry['kind']>([
  [modes.executable, 'executable'],
  [modes.symlink, 'symlink'],
  [modes.submodule, 'submodule'],
]);

/** Everything but directories, in the order of git's index. Undefined when there is no such commit. */
export async function readWholeTree(
  database: ObjectDatabase,
  commit: string,
  breathe: Breathe,
): Promise<TreeEntry[] | undefined> {
  const root = new CommitGraph(database).commitOf(commit)?.tree;
  if (root === undefined) return undefined;
  const entries: TreeEntry[] = [];
  const stack = [{ cursor: openTree(database, root), prefix: '' }];
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    const pause = breathe();
    if (pause !== undefined) await pause;
    const { cursor, prefix } = top;
    if (!cursor.next()) stack.pop();
    else if (cursor.mode === modes.tree)
      stack.push({ cursor: openTree(database, cursor.oid()), prefix: `${prefix}${cursor.name()}/` });
    else
      entries.push({
        path: prefix + cursor.name(),
        kind: kinds.get(cursor.mode) ?? 'file',
        oid: cursor.oid().toString('hex') as ObjectId,
      });
  }
  return entries;
}

function openTree(database: ObjectDatabase, oid: Buffer): TreeCursor {
  const object = database.read(oid);
  if (object?.type !== objectTypes.tree) throw new Error(`tree ${oid.toString('hex')} is missing`);
  return new TreeCursor(object.data);
}

/** Contents in the order asked, as many as fit into `bytes` but always the first. Ends before what is not there. */
export async function readContents(
  database: ObjectDatabase,
  oids: readonly string[],
  bytes: number,
  breathe: Breathe,
): Promise<Uint8Array[]> {
  const contents: Uint8Array[] = [];
  let total = 0;
  for (const oid of oids) {
    const pause = breathe();
    if (pause !== undefined) await pause;
    const location = database.find(Buffer.from(oid, 'hex'));
    if (location === undefined) break;
    total += database.readSize(location);
    if (contents.length > 0 && total > bytes) break;
    contents.push(database.readAt(location).data);
  }
  return contents;
}
