import type { AppId } from '#shared/ids.ts';
import type { RolloutFacts } from '#shared/platform/rollouts.ts';
import type { TrafficFacts } from '#shared/platform/traffic.ts';
import type { Candidate, EndedRollout } from './app-state.ts';
import { listInstances } from './instances.ts';
import { type AppObservation, currentStatus, isDeployed, isPromoted, otherDeployments } from './observe-app.ts';

const noTraffic: TrafficFacts = { requests: 0, errors: 0, totalMilliseconds: 0, latencies: [] };

/** What is known of the requests to an app's two releases. */
export interface RolloutTraffic extends Pick<RolloutFacts, 'traffic' | 'secondsSinceRequest'> {}

/** Where nothing counts requests. */
export const unknownTraffic: RolloutTraffic = {
  traffic: { candidate: noTraffic, stable: noTraffic },
  secondsSinceRequest: Number.POSITIVE_INFINITY,
};

/** How a rollout that has ended is reported. */
export function endedFacts({ releaseId, releaseVersion, phase, cause = '', output = [] }: EndedRollout): RolloutFacts {
  return {
    releaseId,
    releaseVersion,
    phase,
    weight: phase === 'live' ? 100 : 0,
    ...unknownTraffic,
    crash: undefined,
    failure: phase === 'aborted' ? { cause, output } : undefined,
  };
}

/** What is true of a candidate at one moment. */
export interface CandidateProgress {
  /** Of the traffic, in percent. */
  weight: number;
  /** All instances that shall run at this weight do. */
  isUp: boolean;
  /** The release has all traffic and its older one is not needed any more; process types without traffic may be switched. */
  isWebDone: boolean;
  /** Every process type is of this release and available. */
  isDone: boolean;
  crash: string | undefined;
}

/** Reads a candidate's progress from the objects. */
export function candidateProgress(app: AppObservation, appId: AppId, candidate: Candidate): CandidateProgress {
  const crash = listInstances(app.pods).find(
    (instance) => instance.releaseVersion === candidate.releaseVersion && instance.crash !== undefined,
  )?.crash;
  const others = otherDeployments(app);
  const names = new Set(others.map(({ metadata }) => metadata.name));
  const areOthersDone =
    names.size === candidate.others.length &&
    candidate.others.every((name) => names.has(name)) &&
    others.every((each) => each.metadata.annotations?.['paas/release-id'] === candidate.releaseId && isDeployed(each));
  if (candidate.weights === undefined)
    return { weight: areOthersDone ? 100 : 0, isUp: areOthersDone, isWebDone: true, isDone: areOthersDone, crash };
  const status = currentStatus(app, appId);
  const isWebDone = isPromoted(status);
  // The first release has no steps: it is up or it is not.
  const weight = isWebDone ? 100 : app.state.live === undefined ? 0 : (status?.canary?.weights?.canary.weight ?? 0);
  return { weight, isUp: weight > 0, isWebDone, isDone: isWebDone && areOthersDone, crash };
}
