/**
 * The ports of the ground the house stands on: one machine (`local/`), Kubernetes (`kubernetes/`), or memory for tests
 * (`memory/`). Drivers report facts; shared/core decides what they mean. All verbs are idempotent: `ensure…` again is
 * harmless, `delete…` says whether there was anything. Every method may throw `AppError('internal')` when the ground
 * itself fails.
 */
import type { AppId, BuildId, ReleaseId, TenantId } from '#shared/ids.ts';
import type { Addons } from '#shared/platform/addons.ts';
import type { ReleaseTraffic } from '#shared/routing/routing.ts';

export interface Platform {
  readonly capabilities: PlatformCapabilities;
  readonly caches: BuildCaches;
  readonly builds: BuildRunner;
  readonly images: Images;
  readonly workloads: Workloads;
  readonly logs: AppLogs;
  readonly certificates: Certificates;
  readonly addons: Addons;
}

export interface PlatformCapabilities {
  /** `pipeline` label of builds and of the counter: 'local' or 'tekton'. */
  readonly pipeline: string;
  /** False: code is run unconfined, so only the operator's own tenant may build and sign-up is closed. */
  readonly sandbox: boolean;
  /** Why `sandbox` is false, and the command that mends it. */
  readonly sandboxProblem?: string;
}

// ---------------------------------------------------------------- build cache

export interface BuildCaches {
  /** Creates the app's 5 Gi cache volume if missing. `existed` decides Cold or Warm, so call it right before a build. */
  ensureCache(appId: AppId): Promise<{ existed: boolean }>;
  /** Deletes the volume. False when there was none. The next `ensureCache` reports `existed: false`. */
  deleteCache(appId: AppId): Promise<boolean>;
  /** Undefined when there is none. */
  readCache(appId: AppId): Promise<{ usedBytes: number } | undefined>;
}

// --------------------------------------------------------------------- builds

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

export type CacheState = 'Cold' | 'Warm';

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

export interface Images {
  imageExists(imageUrl: string): Promise<boolean>;
  /** False when there was none. Never called for an image that a kept release uses. */
  deleteImage(imageUrl: string): Promise<boolean>;
  /** Everything of an app at once, at its purge. */
  deleteImages(appId: AppId): Promise<boolean>;
}

// ------------------------------------------------------------------ workloads

export interface WorkloadSpec {
  appId: AppId;
  appName: string;
  tenantId: TenantId;
  releaseId: ReleaseId;
  releaseVersion: number;
  imageUrl: string;
  processes: readonly ProcessSpec[];
  /** The app's variables and add-on URLs. Secret. The driver adds PORT, HOME, PATH and DYNO-like facts. */
  env: Readonly<Record<string, string>>;
  /** Host names that reach the process type 'web': the app's subdomain first, then its own domains. */
  hosts: readonly string[];
  /** HTTP path that must answer below 500 before traffic; undefined: a TCP connect to PORT is enough. */
  healthPath?: string;
}

export interface ProcessSpec {
  type: string;
  /** A shell command line from the Procfile. Only a shell inside the app's own sandbox ever sees it. */
  command: string;
  quantity: number;
}

export interface RolloutPlan {
  /** Percentages of traffic, ascending, last 100. */
  weights: readonly number[];
  /** Longest time on one step while there is traffic to learn from; without traffic a step passes at once. */
  stepSeconds: number;
}

export interface RolloutFacts {
  phase: 'starting' | 'progressing' | 'live' | 'aborted';
  /** Traffic of the new release now, in percent. */
  weight: number;
  /** Why it was aborted, or what the step was judged by ('120 requests, 0 errors'). */
  detail?: string;
  /** Last lines of the new release's output, when it aborted before or while serving. */
  output?: readonly string[];
}

export interface Workloads {
  /**
   * Brings `spec` live beside whatever serves now: start, wait for health, move traffic by `plan`, drain and stop the
   * old. Yields a fact at each change; the last is 'live' or 'aborted' (then the old release has all traffic and the new
   * one is gone). Called again after a crash it picks up from where the ground is. Ending the iteration early leaves the
   * rollout where it is; the signal aborts it.
   */
  rollOut(spec: WorkloadSpec, plan: RolloutPlan, signal: AbortSignal): AsyncIterable<RolloutFacts>;
  /**
   * Makes exactly `spec` run and serve, without a canary: after a start of the platform and for scaling. Instances that
   * already match are left alone. Resolves when traffic is served by `spec` or it is known that it cannot be.
   */
  ensureWorkload(spec: WorkloadSpec): Promise<void>;
  /** Replaces every instance one by one without losing a request. Resolves when all are new. */
  restartWorkload(appId: AppId): Promise<void>;
  /** Stops all of the app's instances and its routes. False when there was nothing. Its logs stay. */
  deleteWorkload(appId: AppId): Promise<boolean>;
  /** Empty when nothing runs. */
  readInstances(appId: AppId): Promise<readonly InstanceFacts[]>;
  /** What the app's instances use, and what reached it. Nothing of either for an app that does not run. */
  readUsage(appId: AppId): Promise<AppUsage>;
  /** Runs `command` in the image once, beside the app (release command). Resolves with its exit code. */
  runOnce(spec: WorkloadSpec, command: string, line: LineSink, signal: AbortSignal): Promise<number>;
}

export interface AppUsage {
  instances: readonly InstanceUsage[];
  /** Of every release that had a route of late. A count that is lower than before began anew at zero. */
  traffic: readonly ReleaseTraffic[];
}

export interface InstanceUsage {
  /** Names this run of the instance; another one after each start. */
  run: string;
  type: string;
  /** Processor time since the run began. */
  cpuSeconds: number;
  /** In memory now, without what the system would give back for the asking. */
  memoryBytes: number;
}

export type InstanceState = 'starting' | 'up' | 'crashed' | 'stopping';

export interface InstanceFacts {
  /** `<type>.<n>`, as 'web.1'. */
  name: string;
  type: string;
  state: InstanceState;
  releaseVersion: number;
  startedAt: Date;
  restarts: number;
}

// --------------------------------------------------------------- certificates

export interface Certificates {
  /** The certificate of a host that leads to an app. Undefined while there is none. */
  readCertificate(host: string): Promise<{ expiresAt: Date } | undefined>;
}

// ----------------------------------------------------------------------- logs

export interface AppLogEntry {
  ts: Date;
  /** `<type>.<n>`, or 'paas' for what the platform says about the app (started, crashed, scaled). */
  process: string;
  stream: 'stdout' | 'stderr' | 'platform';
  releaseVersion: number;
  message: string;
  /** Where the log goes on behind it, for `after`; of [0-9.]. The same as long as the entry is kept. */
  position: string;
}

export interface AppLogQuery {
  /** Newest that many, in time order. */
  lines: number;
  since?: Date;
  /** A type ('web') or an instance ('web.1'). */
  process?: string;
  releaseVersion?: number;
}

export interface AppLogs {
  /** Kept over deploys, crashes and restarts of the platform. */
  readLogs(appId: AppId, query: AppLogQuery): Promise<readonly AppLogEntry[]>;
  /**
   * First what `readLogs` gives, then new entries as they come, with no gap and none twice, until the signal aborts. With
   * `after` instead of `readLogs` all behind that position; what is no position counts as none.
   */
  followLogs(appId: AppId, query: AppLogQuery, signal: AbortSignal, after?: string): AsyncIterable<AppLogEntry>;
  /** Adds an entry in the platform's own name. */
  appendPlatformLog(appId: AppId, message: string): Promise<void>;
  deleteLogs(appId: AppId): Promise<boolean>;
}
