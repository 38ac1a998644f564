import { AppError, notFound } from '#shared/errors.ts';
import { GitFault } from '#shared/git/git-fault.ts';
import type { GitReader, Submodule, TreeEntry } from '#shared/git/git-storage.ts';
import { readGitmodules } from '#shared/git/objects/read-gitmodules.ts';
import { type PackTasks, pinPacks } from '#shared/git/repository/pinned-packs.ts';
import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';

const fullOid = /^[0-9a-f]{40}$/;

/** Reads repositories through the worker threads. */
export function createGitReader(access: RepositoryAccess): GitReader {
  return {
    async *readTree(repositoryId, commit) {
      using packs = await pinPacks(access, repositoryId);
      yield* readTree(packs, commit);
    },

    async listSubmodules(repositoryId, commit) {
      using packs = await pinPacks(access, repositoryId);
      return await listSubmodules(packs, commit);
    },

    async resolveCommit(repositoryId, revision) {
      const oid = fullOid.test(revision) ? revision : await findRef(access, repositoryId, revision);
      if (oid === undefined) return undefined;
      using packs = await pinPacks(access, repositoryId);
      const [found] = await packs.run('inspect', { oids: [oid] });
      return found?.peeledType === 'commit' ? (found.peeled as ObjectId) : undefined;
    },

    async isAncestor(repositoryId, ancestor, descendant) {
      using packs = await pinPacks(access, repositoryId);
      const found = await packs.run('inspect', { oids: [ancestor, descendant] });
      if (found.some((each) => each === undefined)) throw notFound('commit');
      const [answer] = await packs.run('ancestry', { pairs: [[ancestor, descendant]] });
      return answer === true;
    },
  };
}

/**
 * See `GitReader.readTree`.
 * @throws AppError not_found when the packs do not have the commit, validation_failed when its tree is beyond `limits.tree`
 */
export async function* readTree(packs: PackTasks, commit: ObjectId) {
  const entries = await listTree(packs, commit);
  const contents = new ReadAhead(packs, entries);
  try {
    for (const [i, entry] of entries.entries()) yield { ...entry, read: () => contents.read(i) };
  } finally {
    // The caller releases the packs next: nothing may read them any more.
    await contents.settle();
  }
}

/** See `GitReader.listSubmodules`. @throws AppError like `readTree` */
export async function listSubmodules(packs: PackTasks, commit: ObjectId): Promise<readonly Submodule[]> {
  const entries = await listTree(packs, commit);
  const submodules = entries.filter(({ kind }) => kind === 'submodule');
  const file = entries.findIndex(({ path, kind }) => path === '.gitmodules' && kind !== 'submodule');
  if (submodules.length === 0 || file < 0)
    return submodules.map(({ path, oid }) => ({ path, commit: oid, url: undefined, isOff: false }));
  const settings = readGitmodules(Buffer.from(await new ReadAhead(packs, entries).read(file)));
  return submodules.map(({ path, oid }) => {
    const { url, update } = settings.get(path) ?? {};
    return { path, commit: oid, url, isOff: update === 'none' };
  });
}

async function listTree(packs: PackTasks, commit: ObjectId): Promise<readonly TreeEntry[]> {
  const entries = fullOid.test(commit) ? await packs.run('tree', { commit }).catch(throwUnreadable) : undefined;
  if (entries === undefined) throw notFound('commit');
  return entries;
}

function throwUnreadable(error: unknown): never {
  if (!(error instanceof GitFault)) throw error;
  throw new AppError('validation_failed', `The commit cannot be read: ${error.message}.`, { cause: error });
}

/** Tries what git tries: the name as a full ref, then as a tag, then as a branch. */
async function findRef({ refs }: RepositoryAccess, repositoryId: RepositoryId, name: string): Promise<ObjectId | undefined> {
  for (const candidate of [...(name.startsWith('refs/') ? [name] : []), `refs/tags/${name}`, `refs/heads/${name}`]) {
    const oid = await refs.readRef(repositoryId, candidate);
    if (oid !== undefined) return oid;
  }
  return undefined;
}

/** Limits of what is read ahead. */
const aheadBytes = 8 * 1024 * 1024;
const aheadFiles = 256;

/** Contents of consecutive entries: as many as were requested and fit into `aheadBytes`. */
interface Run {
  /** By index of the entry. */
  contents: Map<number, Uint8Array>;
  /** Index after the last entry of the run. */
  end: number;
}

/**
 * Reads the contents of entries. Callers read one file at a time, nearly always in order, so a run of files is fetched in one
 * worker task. Each run is larger than the last, and the next run is fetched while the current one is being read.
 */
class ReadAhead {
  readonly #packs: PackTasks;
  readonly #entries: readonly TreeEntry[];
  #current: Run = { contents: new Map(), end: 0 };
  #next: { from: number; run: Promise<Run> } | undefined;
  /** Files in the next run. */
  #step = 1;

  constructor(packs: PackTasks, entries: readonly TreeEntry[]) {
    this.#packs = packs;
    this.#entries = entries;
  }

  async read(index: number): Promise<Uint8Array> {
    if (this.#entries[index]?.kind === 'submodule') throw notFound('file: a submodule has its content in another repository');
    if (!this.#current.contents.has(index)) await this.#startRunAt(index);
    const content = this.#current.contents.get(index);
    this.#current.contents.delete(index);
    if (content === undefined) throw notFound('file');
    return content;
  }

  /** Resolves when no run is being fetched any more. */
  async settle(): Promise<void> {
    await this.#next?.run.catch(() => undefined);
  }

  async #startRunAt(index: number): Promise<void> {
    this.#step = index === this.#current.end ? Math.min(this.#step * 4, aheadFiles) : 1;
    const next = this.#next;
    this.#next = undefined;
    this.#current = await (next?.from === index ? next.run : this.#fetch(index));
    const { end } = this.#current;
    if (this.#step < aheadFiles || end >= this.#entries.length) return;
    const run = this.#fetch(end);
    // A failure is thrown when the run is used, which may never happen.
    run.catch(() => undefined);
    this.#next = { from: end, run };
  }

  async #fetch(from: number): Promise<Run> {
    const wanted: number[] = [];
    let end = from;
    for (; end < this.#entries.length && wanted.length < this.#step; end++) {
      if (this.#entries[end]?.kind !== 'submodule') wanted.push(end);
    }
    const oids = wanted.flatMap((i) => this.#entries[i]?.oid ?? []);
    const contents = await this.#packs.run('contents', { oids, bytes: aheadBytes });
    const run = new Map(contents.map((content, i) => [wanted[i] ?? -1, content]));
    return { contents: run, end: wanted[contents.length] ?? end };
  }
}
