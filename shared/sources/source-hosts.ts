/**
 * Port: external git hosts and file servers. Addresses come from users, so a driver never connects to private networks unless the
 * operator allows that. Faults of the host, the address or the repository are `validation_failed` with a message for the owner
 * of the app: `SourceUnavailable` where the same request may succeed later.
 */
import type { ObjectId } from '#shared/ids.ts';
import type { SourceEntry, SourceStream } from '#shared/platform/builds.ts';

/** How a private repository is read. */
export interface SourceAccess {
  /** Required for an SSH address. */
  key?: SourceKey | undefined;
  /** For an https or http address. Sent to the origin of the address only, not to where that redirects. */
  token?: SourceToken | undefined;
}

/** A token that a git host gave to its user. */
export interface SourceToken {
  /** The user name that goes with it; most hosts accept any. */
  user: string;
  value: string;
}

/** A fetch of one commit from a git host. */
export interface SourceRequest extends SourceAccess {
  /** https, http or ssh address. */
  url: string;
  /** 'refs/heads/main' */
  ref: string;
  /** Undefined: the commit that `ref` points to. */
  commit: ObjectId | undefined;
  /** Commits that exist here and need not be sent. */
  haves: readonly ObjectId[];
  /** Fetches only the commit without its history, if the host supports that. */
  withoutHistory?: true;
  signal: AbortSignal;
}

/** A question for the branches of a repository on a git host. */
export interface TipsRequest extends SourceAccess {
  /** https, http or ssh address. */
  url: string;
  signal: AbortSignal;
}

/** The branches of a repository on a git host. */
export interface RemoteTips {
  /** The newest commit of each branch, by its name without 'refs/heads/'. */
  branches: ReadonlyMap<string, ObjectId>;
  /** The branch that HEAD names; undefined if there is none, for example in an empty repository. */
  defaultBranch: string | undefined;
  /** The key of an SSH host that was not in `hostKeys`. */
  newHostKey?: HostKey;
}

/** The key that an SSH host showed: base64, and `host:port`. */
export interface HostKey {
  host: string;
  key: string;
}

/** The deploy key of an app. */
export interface SourceKey {
  /** PEM. */
  privateKey: string;
  /** Known host keys: base64 by `host:port`, stored at the first connection. */
  hostKeys: Readonly<Record<string, string>>;
}

/** A fetch whose pack is arriving. */
export interface FetchedSource {
  commit: ObjectId;
  /** A pack with all objects that `haves` lack; may be thin. The caller reads it to its end or aborts. */
  pack: AsyncIterable<Uint8Array>;
  /** The key of an SSH host that was not in `hostKeys`. */
  newHostKey?: HostKey;
}

/** A repository of a git host with an API. */
export interface GitHostTarget {
  /** https address of the repository. */
  url: string;
  /** Whose API it has; Forgejo has Gitea's. */
  kind: 'github' | 'gitlab' | 'gitea';
  token: SourceToken;
  signal: AbortSignal;
}

/** What the git host shows beside a commit. */
export interface CommitStatus extends GitHostTarget {
  commit: ObjectId;
  /** 'error': it neither succeeded nor failed, for example as it was canceled. */
  state: 'pending' | 'success' | 'failure' | 'error';
  /** Which of several statuses of the commit: a later one replaces it. */
  context: string;
  description: string;
  targetUrl: string | undefined;
}

/** What the git host shows in the pull requests of a branch. */
export interface PullRequestComment extends GitHostTarget {
  branch: string;
  /** The first line, invisible: an earlier comment with it is replaced. */
  marker: string;
  /** Markdown. */
  text: string;
}

/** A download of an archive. */
export interface ArchiveRequest {
  /** https or http URL of a tar.gz. The query may hold a signature and never appears in messages. */
  url: string;
  /** Expected SHA-256 of the archive, 64 lower-case hex digits; checked before anything is unpacked. */
  sha256: string | undefined;
  signal: AbortSignal;
}

/** An archive that was downloaded and checked completely. */
export interface FetchedArchive {
  bytes: number;
  sha256: string;
  files: number;
  /** The files without a common top-level folder, `.git` and empty directories. May be called several times. */
  read(): AsyncIterable<SourceEntry>;
  /** Deletes the local copy. */
  discard(): Promise<void>;
}

/** A file that a commit has as a pointer of Git LFS. */
export interface LargeFile {
  /** For messages. */
  path: string;
  /** SHA-256 of its content, 64 lower-case hex digits. */
  oid: string;
  /** Bytes of its content. */
  size: number;
}

/** A download of large files of a repository. */
export interface LargeFilesRequest extends SourceAccess {
  /** https, http or ssh address of the repository. */
  url: string;
  /** Address of its Git LFS server, as `.lfsconfig` has it; undefined: beside the repository. */
  endpoint: string | undefined;
  files: readonly LargeFile[];
  signal: AbortSignal;
}

/** Large files that were downloaded and checked completely. */
export interface FetchedLargeFiles {
  bytes: number;
  /** The content of a requested file, by its id. May be called several times. */
  read(oid: string): SourceStream;
  /** Deletes the local copies. */
  discard(): Promise<void>;
}

export interface SourceHosts {
  /** Whether this platform may connect to the address at all. @throws AppError validation_failed if it may not */
  checkAddress(url: string): Promise<void>;
  /** Resolves when the pack begins to arrive. @throws AppError validation_failed */
  fetchSource(request: SourceRequest): Promise<FetchedSource>;
  /** All branches of a repository. @throws AppError validation_failed */
  listTips(request: TipsRequest): Promise<RemoteTips>;
  /** Tells the git host how a build of a commit goes. @throws AppError validation_failed */
  setCommitStatus(status: CommitStatus): Promise<void>;
  /** Writes or replaces a comment. @returns how many pull requests there are. @throws AppError validation_failed */
  commentOnPullRequests(comment: PullRequestComment): Promise<number>;
  /** Resolves when the archive is downloaded and checked. @throws AppError validation_failed */
  fetchArchive(request: ArchiveRequest): Promise<FetchedArchive>;
  /** Resolves when all files are downloaded and checked. @throws AppError validation_failed that names the file */
  fetchLargeFiles(request: LargeFilesRequest): Promise<FetchedLargeFiles>;
  /** A new ed25519 key pair. The public key is one line in OpenSSH form without comment. */
  createKey(): Promise<{ privateKey: string; publicKey: string }>;
}
