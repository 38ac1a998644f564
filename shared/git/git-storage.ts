/**
 * The storage port of git: refs that move by compare-and-swap, and packs that never change once they are in. Any number
 * of processes may serve one repository. Drivers: refs in PostgreSQL or memory, packs in a directory (object store next).
 */
import type { Db } from '#shared/database/schema.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';

export interface Ref {
  /** Full name, 'refs/heads/main'. */
  name: string;
  oid: ObjectId;
}

/** `undefined` stands for "does not exist": no old means create, no new means delete. */
export interface RefChange {
  name: string;
  oldOid: ObjectId | undefined;
  newOid: ObjectId | undefined;
}

export interface RefStore {
  /** Sorted by name in byte order. */
  listRefs(repositoryId: RepositoryId): Promise<readonly Ref[]>;
  readRef(repositoryId: RepositoryId, name: string): Promise<ObjectId | undefined>;
  /** By name; those that do not exist are left out. */
  readRefs(repositoryId: RepositoryId, names: readonly string[]): Promise<ReadonlyMap<string, ObjectId>>;
  /**
   * All or nothing: true when every old value was as stated and all changes are made. Takes part in the caller's
   * transaction, so the row and whatever depends on it commit together.
   */
  compareAndSwap(db: Db, repositoryId: RepositoryId, changes: readonly RefChange[]): Promise<boolean>;
  /** Each by itself, and names of those that were made; in the caller's transaction likewise. */
  swapEach(db: Db, repositoryId: RepositoryId, changes: readonly RefChange[]): Promise<ReadonlySet<string>>;
}

/** A received pack: complete (thin bases appended), indexed, checked, on stable storage, but not yet part of the repository. */
export interface StagedPack {
  /** 40 hex digits: the pack's trailing checksum, which names its files. */
  readonly packId: string;
  readonly objectCount: number;
  readonly bytes: number;
  /** For the person who sent it: what is odd about objects, a line each. */
  readonly warnings: readonly string[];
  /** Makes it part of the repository in the caller's transaction. Files are in place before the row is. Again is harmless. */
  admit(db: Db): Promise<void>;
  /** Forgets it. Harmless after `admit`. */
  discard(): Promise<void>;
}

export interface PushRequest {
  commands: readonly RefChange[];
  atomic: boolean;
  pushOptions: readonly string[];
  /** Undefined when the client had nothing new to send. */
  pack: StagedPack | undefined;
}

export type RefResult = { name: string; status: 'ok' } | { name: string; status: 'rejected'; reason: string };

/** What a push means is decided by the caller (shared/core/pushes/pushes-service.ts), once all objects are in and sound. */
export type ApplyPush = (
  request: PushRequest,
  /** A line for the person pushing; arrives there at once as `remote: …`. */
  tell: (line: string) => void,
  /** Aborted when the client has gone. Work that must outlive it does not listen. */
  clientGone: AbortSignal,
) => Promise<readonly RefResult[]>;

/** One side of a git client's connection: SSH channel or HTTP body. */
export interface GitStream {
  input: AsyncIterable<Uint8Array>;
  /** Resolves when more may be written (back pressure). */
  write(chunk: Uint8Array): Promise<void>;
  /** The client's GIT_PROTOCOL, already validated ('version=2'), or ''. */
  protocol: string;
  clientGone: AbortSignal;
  /**
   * Over HTTP a session is several requests, each of which stands for itself: the refs are advertised in one, what is
   * asked for is served in others. Unset where one connection carries all of it.
   */
  step?: 'advertise' | 'serve';
}

/** A repository as its clients see it. */
export interface GitRepository {
  repositoryId: RepositoryId;
  /** The branch that HEAD names, whether it exists yet or not: 'refs/heads/main'. */
  headRef: string;
}

export interface PushEnd {
  /** To give the client. */
  exitStatus: number;
  /** Refs that it asked to change; 0 when everything was up to date. */
  refsAsked: number;
}

export interface GitServer {
  /**
   * Serves one receive-pack session to its end. Protocol faults are told to the client (`ERR` or `unpack …`) and resolve
   * too; it rejects only on faults of ours.
   */
  receivePack(repository: GitRepository, stream: GitStream, applyPush: ApplyPush): Promise<PushEnd>;
  /** Likewise; resolves with the exit status to give the client. */
  uploadPack(repository: GitRepository, stream: GitStream): Promise<number>;
}

export interface TreeEntry {
  path: string;
  kind: 'file' | 'executable' | 'symlink' | 'submodule';
  oid: ObjectId;
}

export interface Submodule {
  path: string;
  /** Of its own repository: the one to take. */
  commit: ObjectId;
  /** As `.gitmodules` states it, be it relative; undefined when it does not. */
  url: string | undefined;
  /** `update = none` there: whoever clones does not get it either. */
  isOff: boolean;
}

/**
 * Reading what is stored. Every method rejects with `not_found` for an object that is not there, those that read a whole tree
 * with `validation_failed` for one beyond `limits.tree`.
 */
export interface GitReader {
  /** The whole tree of a commit in path order, directories left out. Files are read while it is walked, not after. */
  readTree(repositoryId: RepositoryId, commit: ObjectId): AsyncIterable<TreeEntry & { read(): Promise<Uint8Array> }>;
  /** In path order; those of its submodules are theirs to tell. */
  listSubmodules(repositoryId: RepositoryId, commit: ObjectId): Promise<readonly Submodule[]>;
  /** Peels tags and turns a branch, tag, full ref or hex id into a commit. Undefined when there is no such thing. */
  resolveCommit(repositoryId: RepositoryId, revision: string): Promise<ObjectId | undefined>;
  isAncestor(repositoryId: RepositoryId, ancestor: ObjectId, descendant: ObjectId): Promise<boolean>;
}

/** The files of one commit that was fetched without its history. */
export interface Snapshot {
  /** Of the pack it came in. */
  readonly bytes: number;
  readTree(): ReturnType<GitReader['readTree']>;
  listSubmodules(): Promise<readonly Submodule[]>;
  /** Forgets it. Again is harmless. */
  discard(): Promise<void>;
}

/** What a repack has joined; zeros when there was nothing to join. */
export interface RepackFacts {
  /** That became one. */
  packs: number;
  /** Of the pack they became. */
  objects: number;
  bytes: number;
}

export interface GarbageFacts {
  /** Objects that were found unreachable now. */
  unreachable: number;
  /** Objects that were unreachable for so long that they are gone now. */
  removed: number;
  /** When others can be removed. */
  nextAt: Date | undefined;
}

/** Housekeeping of a repository while it is in use. Any number of processes may do it at once: the first to be done wins. */
export interface GitMaintenance {
  /** Whether there are so many packs that `repack` is worth it. In the caller's transaction. */
  needsRepack(db: Db, repositoryId: RepositoryId): Promise<boolean>;
  /** Joins small packs into larger ones. Pushes and fetches go on meanwhile. */
  repack(repositoryId: RepositoryId, signal: AbortSignal): Promise<RepackFacts>;
  /**
   * Parts what neither refs nor roots reach from the rest, and removes what was unreachable for the time of grace. Nothing
   * a push relies on is ever removed. Undefined when pushes kept coming in between: then try again later.
   *
   * @param readRoots what must stay beside what refs reach: commits, or anything else; ids of nothing that is stored are ignored
   */
  collectGarbage(
    repositoryId: RepositoryId,
    readRoots: () => Promise<readonly ObjectId[]>,
    signal: AbortSignal,
  ): Promise<GarbageFacts | undefined>;
}

export interface GitStorage {
  readonly refs: RefStore;
  readonly server: GitServer;
  readonly reader: GitReader;
  readonly maintenance: GitMaintenance;
  /**
   * Takes in a pack that was fetched, not pushed, with the checks and limits of a push. To be admitted or discarded.
   * Undefined when it is empty. @throws AppError validation_failed when it is not sound
   */
  stagePack(repositoryId: RepositoryId, pack: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<StagedPack | undefined>;
  /**
   * Takes in a commit of another repository that was fetched without its history, with the checks and limits of a push. It
   * is kept beside the repository and never becomes part of it. @throws AppError validation_failed when it is not sound
   */
  takeSnapshot(
    repositoryId: RepositoryId,
    commit: ObjectId,
    pack: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<Snapshot>;
  /** Everything of a repository: refs and packs. False when there was nothing. */
  deleteRepository(repositoryId: RepositoryId): Promise<boolean>;
  /**
   * Removes what pushes that a crash cut short have left: quarantines, and packs whose transaction did not commit; and
   * packs that others stand in for since so long. With 0 (nobody else uses the directory) all of it.
   * Resolves with how many there were.
   */
  sweep(olderThanSeconds: number): Promise<number>;
  /** Ends the worker threads. Whatever is still running is rejected. */
  close(): Promise<void>;
}
