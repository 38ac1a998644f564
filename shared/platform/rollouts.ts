/**
 * Port: replacing the release of an app that serves with a newer one, with traffic moved in steps. The driver carries the
 * rollout out and reports facts; shared/core/releases decides what happens next and gives the order. A rollout outlives the
 * process that started it: every verb names the app and may come from any process.
 */
import type { AppId, ReleaseId } from '#shared/ids.ts';
import type { TrafficFacts } from '#shared/platform/traffic.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';

/** The verbs of rollouts. */
export interface Rollouts {
  /**
   * Begins to bring `spec` up beside what serves. Resolves as soon as it has begun; `watchRollout` reports how it goes. As
   * soon as the release is up it gets the first of `weights`, or all traffic where nothing serves or there is no process
   * type 'web'. Called again for the same release it changes nothing, and takes the rollout up again where the process that
   * carried it out has ended. An unfinished rollout of another release of the app is aborted first.
   *
   * Kubernetes: patches the image of the Deployment's first container; Argo Rollouts starts its canary steps, and skips them
   * at the first deploy.
   * @param weights percentages of traffic, ascending, last 100
   */
  startRollout(spec: WorkloadSpec, weights: readonly number[]): Promise<void>;
  /**
   * The facts now, then at each change and at least every second or so. Ends after 'live', 'aborted' or 'failed', at once for
   * an app that has no rollout, and with the signal; that ends the watch, never the rollout.
   *
   * Kubernetes: watches the Rollout's status (once `observedGeneration` has caught up) and reads requests by release from
   * the gateway's metrics.
   */
  watchRollout(appId: AppId, signal: AbortSignal): AsyncIterable<RolloutFacts>;
  /**
   * Moves on to the weight after `fromWeight`. Does nothing when the rollout is at another weight already, or is not of this
   * release: an order that comes late or twice skips no step.
   *
   * Kubernetes: promotes the paused step when the Rollout's weight is `fromWeight`.
   */
  advanceRollout(appId: AppId, releaseId: ReleaseId, fromWeight: number): Promise<void>;
  /**
   * Gives the new release all traffic and switches the process types that have none; the old release drains and goes.
   * Resolves as soon as that has begun; the watch ends with 'live'. Does nothing for a release that is not rolled out.
   *
   * Kubernetes: `promoteFull`.
   */
  promoteRollout(appId: AppId, releaseId: ReleaseId): Promise<void>;
  /**
   * Gives all traffic back to the old release; the new one goes. Resolves as soon as that has begun; the watch ends with
   * 'aborted'. Does nothing for a release that is not rolled out.
   *
   * Kubernetes: `abort` in the Rollout's status, then the template of the last good release, since the next change of
   * variables would else ship the aborted image.
   * @param reason written to the app's log, and the cause that the last facts report
   */
  abortRollout(appId: AppId, releaseId: ReleaseId, reason: string): Promise<void>;
  /**
   * Asks an instance of the new or of the old release for the new one's health path, or `/`, as a visitor would: up to three times, one
   * after the other. The new release is asked until an answer is below 500, the old one until an answer is not; nothing is asked again
   * that gave no answer. Undefined for a release that is not rolled out, and where nothing serves requests.
   *
   * Kubernetes: by the Services of the two releases.
   */
  askRelease(appId: AppId, releaseId: ReleaseId, whom: 'candidate' | 'stable'): Promise<ReleaseAnswers | undefined>;
}

/** What the platform was answered. */
export interface ReleaseAnswers {
  path: string;
  /** Whether the app has set the path, and so expects to be asked for it. */
  isOwnPath: boolean;
  /** Statuses, or why there is none: 'gave no answer within 5 s'. */
  answers: readonly (number | string)[];
}

/** What is known of a rollout at one time. */
export interface RolloutFacts {
  releaseId: ReleaseId;
  releaseVersion: number;
  /**
   * 'starting': instances of the new release are being started. 'serving': they are up and have `weight` percent of the
   * traffic. 'live': the new release is what serves. 'aborted': the old one is, and the new one is gone. 'failed': the
   * platform itself could not carry on.
   */
  phase: 'starting' | 'serving' | 'live' | 'aborted' | 'failed';
  /** Traffic of the new release now, in percent. */
  weight: number;
  /** Counted since each release first had a route. */
  traffic: { candidate: TrafficFacts; stable: TrafficFacts };
  /** Since the last request to either release; Infinity when there was none. */
  secondsSinceRequest: number;
  /** Why an instance of the new release does not run ('web.1 exited with code 4'); undefined while all of them do. */
  crash: string | undefined;
  /** Of 'aborted' and 'failed': why, and the newest lines that the new release printed, oldest first. */
  failure: { cause: string; output: readonly string[] } | undefined;
}
