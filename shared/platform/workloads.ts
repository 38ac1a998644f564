/** Port: running a release of an app. Replacing it by a newer one is the port Rollouts. */
import type { AppId, ReleaseId, TenantId } from '#shared/ids.ts';
import type { AddonType } from '#shared/platform/addons.ts';
import type { LineSink } from '#shared/platform/builds.ts';

/**
 * When an instance counts as up. What is left out has the driver's default.
 *
 * Kubernetes: a `startupProbe` and a `readinessProbe` of the container for PORT, `httpGet` with the path or else `tcpSocket`;
 * `timeoutSeconds` is the health time-out, `failureThreshold` times `periodSeconds` of the startup probe the boot time-out, and the
 * Rollout's `progressDeadlineSeconds` is above it.
 */
export interface BootSettings {
  /** HTTP path that must answer below 500 before traffic; left out: a TCP connect to PORT is enough. */
  healthPath?: string;
  /** Longest time for one answer of that path. */
  healthTimeoutSeconds?: number;
  /** Longest time from the start of an instance until it is up. */
  bootTimeoutSeconds?: number;
}

/** A release of an app, and how much of it shall run. */
export interface WorkloadSpec extends BootSettings {
  appId: AppId;
  appName: string;
  tenantId: TenantId;
  releaseId: ReleaseId;
  releaseVersion: number;
  imageUrl: string;
  /** All types of the release, also those of which nothing runs now. */
  processes: readonly ProcessSpec[];
  /** The app's variables as they were when the release was made. Secret. The driver adds PORT, HOME, PATH and its own facts. */
  config: Readonly<Record<string, string>>;
  /** What add-ons give the app now. Their variables win over `config`. */
  bindings: readonly AddonBinding[];
  /** Host names that reach the process type 'web': the app's subdomain first, then its own domains. */
  hosts: readonly string[];
  /**
   * Whether a visitor stays with one release and one instance. True when left out. Of the app, not of the release: it applies to the
   * whole route.
   *
   * Kubernetes: `sessionPersistence` (type Cookie) in the rules of the HTTPRoute, where the Gateway has it. Else each request is divided
   * anew: the address that a Service sees is the gateway's, so affinity by address would send all visitors to one instance.
   */
  sessionAffinity?: boolean;
}

/**
 * How an app reaches an add-on.
 *
 * Kubernetes: a Secret in the app's namespace, as `app-<app_id>-kvstore-url`, whose keys are variables of the app's pods.
 */
export interface AddonBinding {
  addonType: AddonType;
  /** By name. Secret. */
  variables: Readonly<Record<string, string>>;
  /**
   * The same under names that clients read by themselves, where the app wants them. The app's own variables win over these. Secret.
   *
   * Kubernetes: in the Secret of the release, since that of the add-on has exactly one key.
   */
  clientVariables?: Readonly<Record<string, string>>;
}

/** A process type, and how many instances of it shall run. */
export interface ProcessSpec {
  type: string;
  /** A shell command line from the Procfile. Only a shell inside the app's own sandbox ever sees it. */
  command: string;
  /** Of instances; 0 for none. */
  quantity: number;
}

/** The verbs of workloads. */
export interface Workloads {
  /**
   * Makes exactly `spec` run and serve, without a canary: after a start of the platform, for scaling and for new hosts.
   * Instances that match already are left alone; an unfinished rollout of another release is aborted. Resolves when `spec`
   * serves or it is known that it cannot.
   *
   * Kubernetes: applies Deployment, Rollout, Services and HTTPRoute, and waits for the Rollout to be healthy.
   */
  ensureWorkload(spec: WorkloadSpec): Promise<void>;
  /**
   * Replaces every instance one by one without losing a request. Resolves when all are new.
   *
   * Kubernetes: sets the Rollout's `spec.restartAt`; an annotation of the Deployment would start a canary.
   */
  restartWorkload(appId: AppId): Promise<void>;
  /**
   * Ends all of the app's instances, its rollout and its routes. False when there was nothing. Its logs stay.
   *
   * Kubernetes: deletes Rollout, Deployment, Services and HTTPRoute.
   */
  deleteWorkload(appId: AppId): Promise<boolean>;
  /**
   * Of all releases that run, ordered by name. Empty when nothing runs.
   *
   * Kubernetes: lists the app's pods.
   */
  readInstances(appId: AppId): Promise<readonly InstanceFacts[]>;
  /**
   * Runs a command once, beside the app (the release command), and gives `line` what it prints. Resolves with its exit code,
   * 128 + n when it was ended by signal n. Rejects with the signal's reason when that aborts; the command has ended then.
   *
   * Kubernetes: creates the Job `run-<id>`; where it exists already it follows that one.
   */
  runOnce(run: CommandRun, line: LineSink, signal: AbortSignal): Promise<number>;
  /**
   * Runs a command once while somebody watches: yields that it was started, what it prints as it comes, then its exit code, and ends.
   * A slow reader slows the command. The command ends when the signal aborts, or the reader stops.
   *
   * Kubernetes: the Job of `runOnce`, followed by its pod's log; input is the `attach` of the pod.
   */
  runAttached(run: AttachedRun, signal: AbortSignal): AsyncIterable<RunOutput>;
  /**
   * Gives a run with `input` more of its standard input, at most 1 MiB at a time; null ends it. What is written is read by the command
   * in this order. False when no such run is under way here.
   *
   * @throws AppError `conflict` when the command has not read what it was given before
   */
  writeInput(runId: string, bytes: Uint8Array | null): Promise<boolean>;
}

/** A command that is run once. */
export interface CommandRun {
  /** Names the run: another call with the same id means the same run. A deploy's id, for its release command. */
  id: string;
  /** Of the release whose image and environment the command gets. */
  spec: WorkloadSpec;
  /** A shell command line. Only a shell inside the app's own sandbox ever sees it. */
  command: string;
}

/** A command that somebody watches. */
export interface AttachedRun extends CommandRun {
  /** Whether `writeInput` feeds its standard input, which is empty otherwise. */
  input: boolean;
  /** Left out: the command has no terminal. */
  terminal?: RunTerminal | undefined;
}

/** A terminal for a command. Its output is all 'stdout'. */
export interface RunTerminal {
  columns: number;
  rows: number;
  /** What TERM says. */
  name: string;
}

/** That it was started and `writeInput` reaches it; what it prints; then its exit code, 128 + n when it was ended by signal n. */
export type RunOutput =
  | { readonly started: true }
  | { readonly stream: 'stdout' | 'stderr'; readonly bytes: Uint8Array }
  | { readonly exitCode: number };

/** 'crashed': it has ended by itself and is about to be started again. 'stopping': it gets no traffic any more. */
export type InstanceState = 'starting' | 'up' | 'crashed' | 'stopping';

/** What is known of an instance. */
export interface InstanceFacts {
  /** `<type>.<n>`, for example 'web.1'. */
  name: string;
  type: string;
  state: InstanceState;
  releaseVersion: number;
  /** Of its present run. */
  startedAt: Date;
  /** How often it was started again after it had ended by itself. */
  restarts: number;
}
