import { AppError, notFound } from '#shared/errors.ts';
import { GitFault } from '#shared/git/git-fault.ts';
import type { GitReader, Submodule, TreeEntry } from '#shared/git/git-storage.ts';
import { readGitmodules } from '#shared/git/objects/read-gitmodules.ts';
import { holdPacks, type ReadPacks } from '#shared/git/repository/pinned-packs.ts';
import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';

const fullOid = /^[0-9a-f]{40}$/;

export function createReader(access: RepositoryAccess): GitReader {
  return {
    async *readTree(repositoryId, commit) {
      using held = await holdPacks(access, repositoryId);
      yield* readTree(held, commit);
    },

    async listSubmodules(repositoryId, commit) {
      using held = await holdPacks(access, repositoryId);
      return await listSubmodules(held, commit);
    },

    async resolveCommit(repositoryId, revision) {
      const oid = fullOid.test(revision) ? revision : await findRef(access, repositoryId, revision);
      if (oid === undefined) return undefined;
      using held = await holdPacks(access, repositoryId);
      const [found] = await held.run('inspect', { oids: [oid] });
      return found?.peeledType === 'commit' ? (found.peeled as ObjectId) : undefined;
    },

    async isAncestor(repositoryId, ancestor, descendant) {
      using held = await holdPacks(access, repositoryId);
      const found = await held.run('inspect', { oids: [ancestor, descendant] });
      if (found.some((each) => each === undefined)) throw notFound('commit');
      const [answer] = await held.run('ancestry', { pairs: [[ancestor, descendant]] });
      return answer === true;
    },
  };
}

/** @throws AppError not_found when the packs do not have the commit, validation_failed when it has more than `limits.tree` */
export async function* readTree(packs: ReadPacks, commit: ObjectId) {
  const entries = await listTree(packs, commit);
  const contents = new ReadAhead(packs, entries);
  try {
    for (const [i, entry] of entries.entries()) yield { ...entry, read: () => contents.read(i) };
  } finally {
    // The packs are given back now: nothing may still read them.
    await contents.settle();
  }
}

/** Likewise. */
export async function listSubmodules(packs: ReadPacks, commit: ObjectId): Promise<readonly Submodule[]> {
  const entries = await listTree(packs, commit);
  const submodules = entries.filter(({ kind }) => kind === 'submodule');
  const file = entries.findIndex(({ path, kind }) => path === '.gitmodules' && kind !== 'submodule');
  if (submodules.length === 0 || file < 0)
    return submodules.map(({ path, oid }) => ({ path, commit: oid, url: undefined, isOff: false }));
  const stated = readGitmodules(Buffer.from(await new ReadAhead(packs, entries).read(file)));
  return submodules.map(({ path, oid }) => {
    const { url, update } = stated.get(path) ?? {};
    return { path, commit: oid, url, isOff: update === 'none' };
  });
}

async function listTree(packs: ReadPacks, commit: ObjectId): Promise<readonly TreeEntry[]> {
  const entries = fullOid.test(commit) ? await packs.run('tree', { commit }).catch(refuse) : undefined;
  if (entries === undefined) throw notFound('commit');
  return entries;
}

function refuse(error: unknown): never {
  if (!(error instanceof GitFault)) throw error;
  throw new AppError('validation_failed', `The commit cannot be read: ${error.message}.`, { cause: error });
}

/** As git understands a name: a full ref first, then a tag, then a branch. */
async function findRef({ refs }: RepositoryAccess, repositoryId: RepositoryId, name: string): Promise<ObjectId | undefined> {
  for (const candidate of [...(name.startsWith('refs/') ? [name] : []), `refs/tags/${name}`, `refs/heads/${name}`]) {
    const oid = await refs.readRef(repositoryId, candidate);
    if (oid !== undefined) return oid;
  }
  return undefined;
}

/** Bytes and files that are read ahead at most. */
const aheadBytes = 8 * 1024 * 1024;
const aheadFiles = 256;

/** A run of files, as many of it as were asked for or had room. */
interface Run {
  /** By index. */
  contents: Map<number, Uint8Array>;
  end: number;
}

/**
 * Files are asked for one at a time, nearly always in order: a run of them is fetched together, in ever larger steps, and
 * the next run while one is handed out.
 */
class ReadAhead {
  readonly #packs: ReadPacks;
  readonly #entries: readonly TreeEntry[];
  #current: Run = { contents: new Map(), end: 0 };
  #next: { from: number; run: Promise<Run> } | undefined;
  #step = 1;

  constructor(packs: ReadPacks, entries: readonly TreeEntry[]) {
    this.#packs = packs;
    this.#entries = entries;
  }

  async read(index: number): Promise<Uint8Array> {
    if (this.#entries[index]?.kind === 'submodule') throw notFound('file: a submodule has its content elsewhere');
    if (!this.#current.contents.has(index)) await this.#turnTo(index);
    const content = this.#current.contents.get(index);
    this.#current.contents.delete(index);
    if (content === undefined) throw notFound('file');
    return content;
  }

  /** Resolves when nothing is being fetched any more. */
  async settle(): Promise<void> {
    await this.#next?.run.catch(() => undefined);
  }

  async #turnTo(index: number): Promise<void> {
    this.#step = index === this.#current.end ? Math.min(this.#step * 4, aheadFiles) : 1;
    const next = this.#next;
    this.#next = undefined;
    this.#current = await (next?.from === index ? next.run : this.#fetch(index));
    const { end } = this.#current;
    if (this.#step < aheadFiles || end >= this.#entries.length) return;
    const run = this.#fetch(end);
    // Whoever asks for it is told; perhaps nobody does.
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
