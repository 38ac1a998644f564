/** Port: running a release of an app and moving traffic to it. */
import type { AppId, ReleaseId, TenantId } from '#shared/ids.ts';
import type { LineSink } from '#shared/platform/builds.ts';
import type { AppUsage } from '#shared/platform/usage.ts';

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
