/**
 * Port: building an app's source into an image. A build is started, watched, canceled and deleted by its id, from any
 * process that has the driver; where the platform can, it goes on when the process that started it ends.
 *
 * Kubernetes: a build is a Tekton `PipelineRun` named `build-<build_id>`, labeled with app id and build id.
 */
import type { AppId, BuildId, TenantId } from '#shared/ids.ts';

export type CacheState = 'Cold' | 'Warm';

/** One file of the tree to build, in path order, parents implied. */
export interface SourceEntry {
  /** Relative, '/'-separated, already checked: no '..', no '.git', no NUL, not absolute. */
  path: string;
  kind: 'file' | 'executable' | 'symlink';
  /** The file's bytes; for a symlink its target. A stream is read, if at all, before the next entry is asked for. */
  content: SourceStream | Uint8Array;
}

/** The bytes of a large file. */
export interface SourceStream extends AsyncIterable<Uint8Array> {
  /** Their number. */
  readonly size: number;
}

/** An address of the control plane for one build, and the token that a request has to send: `Authorization: Bearer <token>`. */
export interface BuildAddress {
  url: string;
  /** Secret. */
  token: string;
}

/** How a driver gets at the tree to build: by a stream, or by an address where the build itself fetches it. */
export interface SourceAccess {
  /** The tree from its beginning, each time it is called. */
  open(): AsyncIterable<SourceEntry>;
  /** GET answers the tree as a tar, once. For a day, or until the build is over. */
  createAddress(): Promise<BuildAddress>;
  /** The driver calls it once, when it will not use the source any more. */
  close(): Promise<void>;
}

export interface BuildSpec {
  buildId: BuildId;
  appId: AppId;
  appName: string;
  tenantId: TenantId;
  source: SourceAccess;
  /** The app's variables, for builders that need them (NODE_ENV, registry tokens). Secret: never in a log or argv. */
  env: Readonly<Record<string, string>>;
  cacheState: CacheState;
  /** SOURCE_VERSION for the build; undefined for a tarball. */
  commit?: string;
  /**
   * POST `{status, image_url, digest}` there says that the build has ended: a hint, upon which `checkBuild` is called. For a
   * day, or until the build is over.
   */
  createCallback(): Promise<BuildAddress>;
  /** After so long the build is stopped and has failed. Waiting for its start does not count. */
  timeoutSeconds: number;
}

/** Takes a line of output as the user reads it: '-----> step', '       detail' or ' !     error', without newline. */
export type LineSink = (line: string) => void;

export type BuildOutcome =
  | {
      status: 'succeeded';
      /** Immutable address of the result: `slug://<app_id>@sha256:<digest>` here, `repo@sha256:…` on Kubernetes. */
      imageUrl: string;
      digest: string;
      /** From the Procfile, or the builder's default; key is the process type ('web' gets traffic), value a command line. */
      processes: Readonly<Record<string, string>>;
      /** The Procfile's `release:` command. */
      releaseCommand?: string;
      /** Name of the builder, as 'node', 'python', 'go', 'static', 'procfile'. */
      builder: string;
    }
  | {
      status: 'failed';
      /** One line for the user: what failed and, where known, how to fix it. */
      cause: string;
    }
  /** Ended by `cancelBuild`. */
  | { status: 'canceled' }
  /** The platform does not know the build, or not any more. It can be started again. */
  | { status: 'lost' };

export type BuildEvent =
  | {
      type: 'line';
      /** Counts up from 1 within the build. */
      number: number;
      /** As the user reads it: '-----> step', '       detail' or ' !     error', without newline. */
      line: string;
    }
  | {
      /** The last one. */
      type: 'ended';
      outcome: BuildOutcome;
      /** That the platform worked on the build; 0 for one that never ran. */
      seconds: number;
    };

export interface Builds {
  /**
   * Starts the build unless the platform knows one of this id, running or ended: then nothing happens. Resolves once the
   * platform has accepted it; it may wait there for its start. The driver closes the source in either case.
   *
   * Kubernetes: creates the PipelineRun, and a Secret with the two tokens that it owns; 409 means that it was started before.
   * The run fetches the source from `source.createAddress()`, and its `finally` task calls `createCallback()`.
   */
  startBuild(spec: BuildSpec): Promise<void>;
  /**
   * The build's lines after number `afterLine`, as they come, then one `ended` event. Any number of watchers, in any
   * process. Aborting the signal ends the watch, never the build: the iteration throws the signal's reason. It throws
   * another error when the platform itself failed to build; a platform that cannot be reached is waited for.
   *
   * Kubernetes: list and watch by label with a periodic relist until the condition `Succeeded` is not Unknown; lines from
   * the log of the run's pod, the image from the results `IMAGE_URL` and `IMAGE_DIGEST`. No such run: `lost`.
   */
  watchBuild(buildId: BuildId, afterLine: number, signal: AbortSignal): AsyncIterable<BuildEvent>;
  /**
   * Asks a build to end: its outcome is `canceled` then, unless it has ended by itself in that moment. False for one that
   * is unknown or over.
   *
   * Kubernetes: merge patch `spec.status: Cancelled`.
   */
  cancelBuild(buildId: BuildId): Promise<boolean>;
  /**
   * A hint that the build may have ended: the driver looks at once instead of at its next look. Never an answer by itself.
   *
   * Kubernetes: reads the PipelineRun again and wakes its watchers.
   */
  checkBuild(buildId: BuildId): Promise<void>;
  /**
   * Removes what the platform keeps of a build; one that still runs is canceled first. False when there was nothing. The
   * image stays.
   *
   * Kubernetes: deletes the PipelineRun, and with it its pods, so that none holds the cache's claim.
   */
  deleteBuild(buildId: BuildId): Promise<boolean>;
}
