/** Port: building an app's source into an image. */
import type { AppId, BuildId, TenantId } from '#shared/ids.ts';

export type CacheState = 'Cold' | 'Warm';

/** One file of the tree to build, in path order, parents implied. */
export interface SourceEntry {
  /** Relative, '/'-separated, already checked: no '..', no '.git', no NUL, not absolute. */
  path: string;
  kind: 'file' | 'executable' | 'symlink';
  /** The file's bytes; for a symlink its target. */
  content: AsyncIterable<Uint8Array> | Uint8Array;
}

/** Says once more what to build each time it is called, so that a build can be started again after a crash. */
export type OpenSource = () => AsyncIterable<SourceEntry>;

export interface BuildSpec {
  buildId: BuildId;
  appId: AppId;
  appName: string;
  tenantId: TenantId;
  openSource: OpenSource;
  /** The app's variables, for builders that need them (NODE_ENV, registry tokens). Secret: never in a log or argv. */
  env: Readonly<Record<string, string>>;
  cacheState: CacheState;
  /** SOURCE_VERSION for the build; undefined for a tarball. */
  commit?: string;
  timeoutSeconds: number;
}

/** A line of build output as the user reads it: '-----> step', '       detail' or ' !     error', without newline. */
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
      /** One line for the user: what failed and, where known, what mends it. */
      cause: string;
    };

export interface BuildRunner {
  /**
   * Builds to the end, calling `line` as output appears. Calling it again with the same buildId (after a crash) first
   * ends whatever is left of the earlier attempt. A build's own failure is an outcome, not an exception.
   * Aborting the signal ends every process of the build and rejects with the signal's reason.
   */
  runBuild(spec: BuildSpec, line: LineSink, signal: AbortSignal): Promise<BuildOutcome>;
}
