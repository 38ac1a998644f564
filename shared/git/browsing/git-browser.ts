import { type ReadCommitResult, readCommit, readTree, TREE, type WalkerEntry, walk } from 'isomorphic-git';
import { AppError, notFound } from '#shared/errors.ts';
import type {
  ChangedFile,
  CommitFacts,
  Comparison,
  DirectoryEntry,
  FileContent,
  GitBrowser,
  Signature,
} from '#shared/git/git-storage.ts';
import type { StoredObject } from '#shared/git/object-graph/read-object.ts';
import { createObjectFiles } from '#shared/git/packs/reading/object-files.ts';
import { type PackTasks, pinPacks } from '#shared/git/repository/pinned-packs.ts';
import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import type { ObjectId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';

const { objectBytes, fileBytes, commits: mostCommits, files: mostFiles, trees: mostTrees } = limits.browsing;

/** Reads commits and trees by isomorphic-git, on the objects that the worker threads read. */
export function createGitBrowser(access: RepositoryAccess): GitBrowser {
  return {
    async readCommit(repositoryId, commit) {
      using packs = await pinPacks(access, repositoryId);
      return readFacts(open(packs), commit);
    },

    async readPath(repositoryId, commit, path) {
      using packs = await pinPacks(access, repositoryId);
      const objects = open(packs);
      const names = path.split('/').filter((name) => name !== '');
      let directory = await list(objects, (await readFacts(objects, commit)).tree);
      for (const [depth, name] of names.entries()) {
        const entry = directory.find((each) => each.name === name);
        const isLast = depth === names.length - 1;
        if (entry === undefined || (!isLast && entry.kind !== 'directory')) throw notFound('file or directory');
        if (entry.kind !== 'directory') return readFile(objects, { kind: entry.kind, oid: entry.oid });
        directory = await list(objects, entry.oid);
      }
      return directory;
    },

    async compare(repositoryId, base, head) {
      using packs = await pinPacks(access, repositoryId);
      return compare(open(packs), packs, base, head);
    },
  };
}

/** What isomorphic-git needs for a call, and the reader beneath it. */
interface Objects {
  git: { fs: ReturnType<typeof createObjectFiles>; gitdir: string; cache: object };
  read(oid: string, longestBytes: number): Promise<StoredObject | undefined>;
}

function open(packs: PackTasks): Objects {
  const read: Objects['read'] = (oid, longestBytes) => packs.run('object', { oid, longestBytes });
  const fs = createObjectFiles(async (oid) => {
    const object = await read(oid, objectBytes);
    if (object !== undefined && object.content === undefined)
      throw new AppError(
        'validation_failed',
        `The ${object.type} ${oid} has ${object.bytes} bytes, which is too large to be shown.`,
      );
    return object;
  });
  return { git: { fs, gitdir: '/', cache: {} }, read };
}

async function readFacts({ git }: Objects, oid: ObjectId): Promise<CommitFacts> {
  return toFacts(await readCommit({ ...git, oid }).catch(explain));
}

function toFacts({ oid, commit }: ReadCommitResult): CommitFacts {
  const signature = ({ name, email, timestamp, timezoneOffset }: ReadCommitResult['commit']['author']): Signature => ({
    name,
    email,
    at: new Date(timestamp * 1000),
    // isomorphic-git counts minutes as JavaScript does: west of UTC is positive.
    utcOffsetMinutes: timezoneOffset === 0 ? 0 : -timezoneOffset,
  });
  return {
    oid: oid as ObjectId,
    tree: commit.tree as ObjectId,
    parents: commit.parent as ObjectId[],
    message: commit.message,
    author: signature(commit.author),
    committer: signature(commit.committer),
  };
}

const kinds: Readonly<Record<string, DirectoryEntry['kind']>> = {
  '040000': 'directory',
  '100755': 'executable',
  '120000': 'symlink',
  '160000': 'submodule',
};

async function list({ git }: Objects, oid: ObjectId): Promise<DirectoryEntry[]> {
  const { tree } = await readTree({ ...git, oid }).catch(explain);
  return tree.map(({ mode, path, oid: entry }) => ({ name: path, kind: kinds[mode] ?? 'file', oid: entry as ObjectId }));
}

async function readFile({ read }: Objects, { kind, oid }: Pick<FileContent, 'kind' | 'oid'>): Promise<FileContent> {
  if (kind === 'submodule') return { kind, oid, bytes: 0, content: undefined };
  const object = await read(oid, fileBytes);
  if (object === undefined) throw notFound('file');
  return { kind, oid, bytes: object.bytes, content: object.content };
}

async function compare(objects: Objects, packs: PackTasks, base: ObjectId, head: ObjectId): Promise<Comparison> {
  const [from, to] = [await readFacts(objects, base), await readFacts(objects, head)];
  const files: ChangedFile[] = [];
  let trees = 0;
  await walk({
    ...objects.git,
    trees: [TREE({ ref: from.oid }), TREE({ ref: to.oid })],
    map: async (path, [before, after]) => {
      const [one, other] = [await describe(before), await describe(after)];
      if (path !== '.' && one.oid === other.oid && one.mode === other.mode) return null;
      if (one.isTree || other.isTree) trees += 1;
      if (trees > mostTrees || files.length > mostFiles) return null;
      if (one.oid !== undefined && !one.isTree && (other.oid === undefined || other.isTree))
        files.push({ path, change: 'deleted' });
      if (other.oid !== undefined && !other.isTree)
        files.push({ path, change: one.oid === undefined || one.isTree ? 'added' : 'modified' });
      return undefined;
    },
  }).catch(explain);
  files.sort((a, b) => (a.path < b.path ? -1 : 1));
  const commits = await listCommits(objects, packs, { base: from.oid, head: to.oid });
  return {
    commits: commits.slice(0, mostCommits),
    files: files.slice(0, mostFiles),
    isComplete: commits.length <= mostCommits && files.length <= mostFiles && trees <= mostTrees,
  };
}

async function describe(entry: WalkerEntry | null | undefined): Promise<{ oid?: string; mode?: number; isTree: boolean }> {
  if (entry == null) return { isTree: false };
  const [oid, mode, type] = [await entry.oid(), await entry.mode(), await entry.type()];
  return { isTree: type === 'tree', ...(oid === undefined ? {} : { oid }), ...(mode === undefined ? {} : { mode }) };
}

/** Commits that `head` has and `base` has not, newest first by the date of the committer; at most one more than are shown. */
async function listCommits(
  objects: Objects,
  packs: PackTasks,
  range: { base: ObjectId; head: ObjectId },
): Promise<CommitFacts[]> {
  const oids = await packs.run('commits', { ...range, most: mostCommits + 1 });
  return Promise.all(oids.map((oid) => readFacts(objects, oid)));
}

/** Errors of isomorphic-git for what is not in the repository or is not what was asked for. */
function explain(error: unknown): never {
  const { code } = error as { code?: string };
  if (code === 'NotFoundError' || code === 'ObjectTypeError') throw notFound('commit');
  throw error;
}
