/**
 * The storage port of git: refs that move by compare-and-swap, and packs that never change once they are stored. Any number
 * of processes may serve one repository. Drivers: refs and the list of packs in PostgreSQL, packs in a directory or an object
 * store; a fake for tests keeps all of it in memory.
 */
import type { Db } from '#shared/database/db.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';

/** A branch, tag or other name for an object. */
export interface Ref {
  /** Full name: 'refs/heads/main'. */
  name: string;
  oid: ObjectId;
}

/** A change of one ref. Without `oldOid` the ref is created, without `newOid` it is deleted. */
export interface RefChange {
  name: string;
  oldOid: ObjectId | undefined;
  newOid: ObjectId | undefined;
}

/** The refs of all repositories. */
export interface RefStore {
  /** All refs, sorted by name in byte order. */
  listRefs(repositoryId: RepositoryId): Promise<readonly Ref[]>;
  readRef(repositoryId: RepositoryId, name: string): Promise<ObjectId | undefined>;
  /** By name. Refs that do not exist are left out. */
  readRefs(repositoryId: RepositoryId, names: readonly string[]): Promise<ReadonlyMap<string, ObjectId>>;
  /**
   * Makes all changes or none. True when every old value was as stated and all changes were made. Takes part in the caller's
   * transaction, so that the refs commit together with what depends on them.
   */
  compareAndSwap(db: Db, repositoryId: RepositoryId, changes: readonly RefChange[]): Promise<boolean>;
  /** Makes each change whose old value is as stated, in the caller's transaction. Returns the names of the refs that changed. */
  swapEach(db: Db, repositoryId: RepositoryId, changes: readonly RefChange[]): Promise<ReadonlySet<string>>;
}

/**
 * A received pack that is not part of the repository yet. It is complete (a thin pack's missing bases were appended), indexed,
 * checked, and on stable storage.
 */
export interface StagedPack {
  /** 40 hex digits: the pack's trailing checksum, which names its files. */
  readonly packId: string;
  readonly objectCount: number;
  readonly bytes: number;
  /** Warnings about objects for the person who sent the pack, one line each. */
  readonly warnings: readonly string[];
  /** Makes the pack part of the repository in the caller's transaction. Calling it again is harmless. */
  admit(db: Db): Promise<void>;
  /** Deletes the pack unless it was admitted. */
  discard(): Promise<void>;
}

/** What a push asks for, once its pack was received and checked. */
export interface PushRequest {
  commands: readonly RefChange[];
  /** All commands or none. */
  atomic: boolean;
  pushOptions: readonly string[];
  /** Undefined when the client had no new objects to send. */
  pack: StagedPack | undefined;
}

/** What became of one ref of a push. The reason is shown to the client. */
export type RefResult = { name: string; status: 'ok' } | { name: string; status: 'rejected'; reason: string };

/**
 * Decides what a push does (shared/core/pushes/pushes-service.ts). Called once all objects were received and checked. Returns
 * a result for each command.
 */
export type ApplyPush = (
  request: PushRequest,
  /** Writes a line to the person who pushes, who sees it at once as `remote: …`. */
  writeLine: (line: string) => void,
  /** Aborted when the client disconnects. Work that must outlive the client ignores it. */
  clientGone: AbortSignal,
) => Promise<readonly RefResult[]>;

/** One side of a git client's connection: an SSH channel or an HTTP request. */
export interface GitStream {
  input: AsyncIterable<Uint8Array>;
  /** Resolves when more may be written. */
  write(chunk: Uint8Array): Promise<void>;
  /** The client's GIT_PROTOCOL, already validated ('version=2'), or ''. */
  protocol: string;
  clientGone: AbortSignal;
  /**
   * Over HTTP a session is several requests: 'advertise' lists the refs, 'serve' answers one request of the client. Undefined
   * over SSH, where one connection does all of it.
   */
  step?: 'advertise' | 'serve' | undefined;
}

/** A repository as its clients see it. */
export interface GitRepository {
  repositoryId: RepositoryId;
  /** The branch that HEAD points at, whether or not it exists: 'refs/heads/main'. */
  headRef: string;
}

/** How a receive-pack session ended. */
export interface PushOutcome {
  /** For the client's process. */
  exitStatus: number;
  /** How many refs the client asked to change. 0 when everything was up to date. */
  requestedRefs: number;
}

/** Serves git clients (gitprotocol-pack(5), gitprotocol-v2(5)). */
export interface GitServer {
  /**
   * Serves one receive-pack session to its end. Faults of the client are reported to it (`ERR` or `unpack …`) and resolve too.
   * Rejects only on faults of the server.
   */
  receivePack(repository: GitRepository, stream: GitStream, applyPush: ApplyPush): Promise<PushOutcome>;
  /** Serves one upload-pack session to its end, likewise. Resolves with the exit status for the client's process. */
  uploadPack(repository: GitRepository, stream: GitStream): Promise<number>;
}

/** A file, symbolic link or submodule of a commit's tree. */
export interface TreeEntry {
  /** From the root of the tree: 'src/main.ts'. */
  path: string;
  kind: 'file' | 'executable' | 'symlink' | 'submodule';
  /** Of the blob; of a submodule, its commit. */
  oid: ObjectId;
}

/** A submodule of a commit. */
export interface Submodule {
  path: string;
  /** The commit to check out, in the submodule's own repository. */
  commit: ObjectId;
  /** As written in `.gitmodules`, possibly relative; undefined when it is missing there. */
  url: string | undefined;
  /** `.gitmodules` says `update = none`: a clone leaves the submodule out. */
  isOff: boolean;
}

/**
 * Reads what is stored. Every method rejects with `not_found` for an object that does not exist; methods that read a whole tree
 * reject with `validation_failed` for one beyond `limits.tree`.
 */
export interface GitReader {
  /** The whole tree of a commit in path order, without directories. `read` must be called during the iteration. */
  readTree(repositoryId: RepositoryId, commit: ObjectId): AsyncIterable<TreeEntry & { read(): Promise<Uint8Array> }>;
  /** In path order. Submodules of submodules are not included. */
  listSubmodules(repositoryId: RepositoryId, commit: ObjectId): Promise<readonly Submodule[]>;
  /** The commit that a branch, tag, full ref or hex id stands for, tags peeled. Undefined when there is none. */
  resolveCommit(repositoryId: RepositoryId, revision: string): Promise<ObjectId | undefined>;
  isAncestor(repositoryId: RepositoryId, ancestor: ObjectId, descendant: ObjectId): Promise<boolean>;
}

/** Who made a commit, and when. */
export interface Signature {
  name: string;
  email: string;
  at: Date;
  /** Of the time zone, east of UTC. */
  utcOffsetMinutes: number;
}

export interface CommitFacts {
  oid: ObjectId;
  tree: ObjectId;
  parents: readonly ObjectId[];
  message: string;
  author: Signature;
  committer: Signature;
}

export interface DirectoryEntry {
  name: string;
  kind: TreeEntry['kind'] | 'directory';
  /** Of the blob or the tree; of a submodule, its commit. */
  oid: ObjectId;
}

export interface FileContent extends Pick<TreeEntry, 'kind' | 'oid'> {
  bytes: number;
  /** Undefined for a submodule, and for a file larger than `limits.browsing.fileBytes`. */
  content: Uint8Array | undefined;
}

export interface ChangedFile {
  path: string;
  change: 'added' | 'modified' | 'deleted';
}

export interface Comparison {
  /** Those of the head that the base does not have, newest first. */
  commits: readonly CommitFacts[];
  /** Files that differ between base and head, by path. */
  files: readonly ChangedFile[];
  /** False when there are more commits or files than `limits.browsing` allows. */
  isComplete: boolean;
}

/** Reads commits, directories and files for people. Rejects with `not_found` for what does not exist. */
export interface GitBrowser {
  readCommit(repositoryId: RepositoryId, commit: ObjectId): Promise<CommitFacts>;
  /** @param path '/'-separated; '' for the root. @returns the entries of a directory, or a file */
  readPath(repositoryId: RepositoryId, commit: ObjectId, path: string): Promise<DirectoryEntry[] | FileContent>;
  compare(repositoryId: RepositoryId, base: ObjectId, head: ObjectId): Promise<Comparison>;
}

/** The files of one commit that was fetched without its history. */
export interface Snapshot {
  /** Size of the pack it came in. */
  readonly bytes: number;
  readTree(): ReturnType<GitReader['readTree']>;
  listSubmodules(): Promise<readonly Submodule[]>;
  /** Deletes the snapshot. Calling it again is harmless. */
  discard(): Promise<void>;
}

/** What a repack joined. All zero when there was nothing to join. */
export interface RepackFacts {
  /** How many packs became one. */
  packs: number;
  /** Of the new pack. */
  objects: number;
  bytes: number;
}

/** What a garbage collection found. */
export interface GarbageFacts {
  /** Objects newly found unreachable. */
  unreachable: number;
  /** Objects that were unreachable for the whole grace period and were removed. */
  removed: number;
  /** When the next objects can be removed; undefined when there are none. */
  nextAt: Date | undefined;
}

/** Maintenance of a repository while it is in use. Any number of processes may run it at once: the first to finish wins. */
export interface GitMaintenance {
  /** Whether the repository has so many packs that `repack` is worthwhile. Reads in the caller's transaction. */
  needsRepack(db: Db, repositoryId: RepositoryId): Promise<boolean>;
  /** Joins small packs into larger ones. Pushes and fetches go on meanwhile. */
  repack(repositoryId: RepositoryId, signal: AbortSignal): Promise<RepackFacts>;
  /**
   * Moves objects that neither refs nor roots reach into packs of their own, and removes objects that were unreachable for the
   * grace period. Nothing that a push relies on is ever removed. Undefined when pushes kept coming in between: try again later.
   *
   * @param readRoots objects to keep beside what refs reach; ids of objects that are not stored are ignored
   */
  collectGarbage(
    repositoryId: RepositoryId,
    readRoots: () => Promise<readonly ObjectId[]>,
    signal: AbortSignal,
  ): Promise<GarbageFacts | undefined>;
}

/** Everything that the platform does with git repositories. */
export interface GitStorage {
  readonly refs: RefStore;
  readonly server: GitServer;
  readonly reader: GitReader;
  readonly browser: GitBrowser;
  readonly maintenance: GitMaintenance;
  /**
   * Receives a pack that was fetched from another host, with the checks and limits of a push. The caller admits or discards it.
   * Undefined when the pack is empty.
   * @throws AppError validation_failed when the pack is invalid
   */
  stagePack(repositoryId: RepositoryId, pack: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<StagedPack | undefined>;
  /**
   * Receives a commit of another repository that was fetched without its history, with the checks and limits of a push. It is
   * kept beside the repository and never becomes part of it.
   * @throws AppError validation_failed when the pack is invalid
   */
  takeSnapshot(
    repositoryId: RepositoryId,
    commit: ObjectId,
    pack: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<Snapshot>;
  /** Deletes the refs and packs of a repository. False when there were none. */
  deleteRepository(repositoryId: RepositoryId): Promise<boolean>;
  /**
   * Removes files that are at least so old and no longer needed: quarantines of interrupted pushes, packs whose transaction did
   * not commit, and packs that others have replaced. With 0 all of them are removed: nobody else may be using the storage then.
   * Resolves with how many were removed.
   */
  sweep(olderThanSeconds: number): Promise<number>;
  /** Ends the worker threads. What is still running rejects. */
  close(): Promise<void>;
}
