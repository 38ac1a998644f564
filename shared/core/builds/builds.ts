/**
 * Builds, their logs and their cache: the nouns, and what entry points may ask of them.
 * A method that takes a caller throws `not_found` for what the caller's tenant does not own and `forbidden` for what the role
 * does not allow. `app` is an id or a name; ids take precedence.
 */
import type { Caller } from '#shared/core/accounts/principals.ts';
import type { Page, PageQuery } from '#shared/core/page.ts';
import type { RemoteSource } from '#shared/core/repositories/source-fetch.ts';
import type { BuildLogLine } from '#shared/core/telemetry/build-logs-store.ts';
import type { AppId, BuildId, ReleaseId } from '#shared/ids.ts';
import type { CacheState } from '#shared/platform/builds.ts';

export type BuildStatus = 'queued' | 'running' | 'succeeded' | 'failed' | 'canceled';

/** Where a build gets its files when they are not in the app's repository here. */
export type BuildSource = RemoteSource | ArchiveSource | ImageSource;

/** A container image in a registry. */
export interface ImageSource {
  /** 'ghcr.io/owner/name:tag' or with '@sha256:…'. */
  imageReference: string;
}

/** A tar.gz on a server elsewhere. */
export interface ArchiveSource {
  /** Without the query, which may hold a signature. */
  archiveUrl: string;
  /** The whole address, sealed. */
  sealedUrl: string;
  /** In lower case: as it must be. */
  sha256: string | null;
  /** As it was when it was fetched last. */
  fetchedSha256?: string;
}

export interface Build {
  id: BuildId;
  appId: AppId;
  status: BuildStatus;
  cacheState: CacheState;
  pipeline: string;
  /** Null until it is known, and for an archive. */
  commit: string | null;
  /** First line of the commit's message, and its author as `Ada <ada@example.com>`; null until the build has read them. */
  commitTitle: string | null;
  commitAuthor: string | null;
  branch: string | null;
  /** The archive it is built of: its address without the query, and its SHA-256 once that is known. Null for a commit. */
  sourceUrl: string | null;
  sourceSha256: string | null;
  /** The container image that it is made of; null for others. */
  sourceImage: string | null;
  imageUrl: string | null;
  error: string | null;
  releaseId: ReleaseId | null;
  createdAt: Date;
  startedAt: Date | null;
  finishedAt: Date | null;
}

export type { BuildLogLine } from '#shared/core/telemetry/build-logs-store.ts';

export interface Builds {
  /**
   * Of the app's repository; default: its branch. `conflict` when there is nothing pushed yet. Or of the tar.gz at
   * `sourceUrl`, or of the container image that `image` refers to; these are fetched when it runs.
   */
  startBuild(
    caller: Caller,
    app: string,
    request: { id?: BuildId; branch?: string; commit?: string; sourceUrl?: string; sourceSha256?: string; image?: string },
  ): Promise<Build>;
  listBuilds(caller: Caller, app: string, page: PageQuery): Promise<Page<Build>>;
  /** `build` is an id, or 'latest'. */
  readBuild(caller: Caller, app: string, build: string): Promise<Build>;
  readBuildLog(
    caller: Caller,
    app: string,
    build: string,
    query: { afterSeq?: number; limit?: number },
  ): Promise<readonly BuildLogLine[]>;
  /** All lines from `afterSeq` on, until the build and the deploy it leads to are over, or the signal aborts. */
  followBuildLog(
    caller: Caller,
    app: string,
    build: string,
    query: { afterSeq?: number },
    signal: AbortSignal,
  ): Promise<AsyncIterable<BuildLogLine>>;
  /** `conflict` when it is over. A queued one ends at once, a running one within seconds. */
  cancelBuild(caller: Caller, app: string, build: string): Promise<Build>;
}

/**
 * What the pipeline of a build may ask of the control plane, by a token of its own.
 * @throws AppError `unauthorized` for a token that is not the build's for this purpose, has expired or is used up
 */
export interface PipelineAccess {
  /** The tree to build, as a tar. Once: the token is used up by it. */
  openSource(buildId: string, token: string): Promise<ReadableStream<Uint8Array<ArrayBuffer>>>;
  /**
   * Has the platform look whether the build has ended. What the pipeline reports is not believed: it is asked of the
   * platform.
   */
  reportCompletion(buildId: string, token: string): Promise<void>;
}

export interface BuildCacheService {
  /** A pointer; it does not say whether the volume exists. */
  readCache(caller: Caller, app: string): Promise<{ appId: AppId; pvcName: string; namespace: string }>;
  flushCache(caller: Caller, app: string): Promise<{ appId: AppId; flushed: boolean; message: string }>;
}
