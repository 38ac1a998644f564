/** How core judges a rollout: pure functions from the driver's facts to the next order. */
import { type Asked, excuseCrash, judgeAnswers } from '#shared/core/releases/answer-rules.ts';
import { counted } from '#shared/counted.ts';
import type { RolloutFacts } from '#shared/platform/rollouts.ts';
import type { TrafficFacts } from '#shared/platform/traffic.ts';

/** What rollouts are judged by. */
export interface RolloutRules {
  /** Percentages of traffic, ascending, last 100. */
  weights: readonly number[];
  /** Longest time on one step while there is traffic to learn from; without traffic a step passes at once. */
  stepSeconds: number;
  /** This many good answers of the new release, over all steps together, are enough to pass the steps from 50% on. */
  enoughGoodRequests: number;
  /** With fewer answers before the last step the releases are asked by the platform itself. */
  smallestSample: number;
  /** Fewer errors than this may be bad luck. */
  fewestErrors: number;
  /** Without a request for this long there is nothing to learn from. */
  quietSeconds: number;
  /** Longest time for an instance to be up again that has ended by a question of the platform. */
  restartSeconds: number;
  /** Assumed of an old release that has had no requests. */
  presumedErrorRate: number;
}

/** The rules that are no setting. The weights are those of SPEC.md §3. */
export const defaultRolloutRules = {
  weights: [10, 25, 50, 100],
  enoughGoodRequests: 20,
  smallestSample: 8,
  fewestErrors: 3,
  quietSeconds: 2,
  presumedErrorRate: 0.02,
} as const satisfies Omit<RolloutRules, 'stepSeconds' | 'restartSeconds'>;

/** What the decision uses of a release's traffic. */
export type TrafficCounts = Pick<TrafficFacts, 'requests' | 'errors'>;

/** Where a step began. */
export interface StepStart {
  weight: number;
  at: Date;
  /** Of the new release. */
  candidate: TrafficCounts;
}

/** What is known of the step that a rollout is at. */
export interface Step {
  phase: RolloutFacts['phase'];
  /** Traffic of the new release now, in percent. */
  weight: number;
  seconds: number;
  /** Since the last request to either release; Infinity when there was none. */
  secondsSinceRequest: number;
  /** Of the new release, on this step. */
  candidate: TrafficCounts;
  /** Of the new release, on all steps together. */
  total: TrafficCounts;
  /** Of the old release, as far back as is known. */
  stable: TrafficCounts;
  /** Why an instance of the new release does not run; undefined when all do. */
  crash: string | undefined;
  /** What the releases answered the platform. */
  asked: Asked;
}

/** The next order to the driver; `ask`: the platform is to ask a release before the next step. */
export type StepDecision =
  | { action: 'wait' }
  | { action: 'ask'; whom: 'candidate' | 'stable' }
  /** `promote` ends the rollout. There is no `judgedBy` where there was no traffic to learn from. */
  | { action: 'advance' | 'promote'; judgedBy?: string }
  | { action: 'abort'; cause: string };

/** The step that `facts` belong to: the one that began at `start`, or another that begins with them. */
export function startOfStep(facts: RolloutFacts, start: StepStart | undefined, now: Date): StepStart {
  return start?.weight === facts.weight ? start : { weight: facts.weight, at: now, candidate: facts.traffic.candidate };
}

/** @param start of the step that `facts` belong to, by `startOfStep` */
export function measureStep(facts: RolloutFacts, start: StepStart, now: Date): Omit<Step, 'asked'> {
  const { candidate, stable } = facts.traffic;
  return {
    phase: facts.phase,
    weight: facts.weight,
    seconds: (now.getTime() - start.at.getTime()) / 1000,
    secondsSinceRequest: facts.secondsSinceRequest,
    candidate: {
      requests: candidate.requests - start.candidate.requests,
      errors: candidate.errors - start.candidate.errors,
    },
    total: candidate,
    stable,
    crash: facts.crash,
  };
}

/**
 * A crash aborts at once, unless the platform itself has caused it; a clearly higher error rate over all steps too. Else a step passes on enough good answers, by its time, or
 * without traffic. Before the new release gets all traffic, a sample must be there: of visitors, or of requests of the platform.
 */
export function decideStep(step: Step, rules: RolloutRules): StepDecision {
  const { phase, weight, candidate, total, stable, crash } = step;
  const excuse = crash === undefined ? undefined : excuseCrash(crash, step.asked, rules.restartSeconds);
  if (excuse?.action === 'abort') return excuse;
  if (excuse !== undefined) return { action: 'wait' };
  if (crash !== undefined)
    return { action: 'abort', cause: phase === 'serving' && weight < 100 ? `${crash} at ${weight}%` : crash };
  if (phase !== 'serving') return { action: 'wait' };
  const isOnly = rules.weights.length === 1;
  if (isOnly) return { action: 'promote' };
  if (isClearlyWorse(total, stable, rules)) {
    return {
      action: 'abort',
      cause:
        `${total.errors} of ${total.requests} requests failed at ${weight}% of the traffic, ` +
        `${stable.errors} of ${stable.requests} on the previous release`,
    };
  }
  if (!isStepOver(step, rules)) return { action: 'wait' };
  if (weight < 100 && nextWeight(rules.weights, weight) === 100 && total.requests < rules.smallestSample) {
    const verdict = judgeAnswers(step.asked);
    if (verdict.action !== 'go on') return verdict;
  }
  const action = weight < 100 ? 'advance' : 'promote';
  return candidate.requests === 0
    ? { action }
    : { action, judgedBy: `${counted(candidate.requests, 'request')}, ${counted(candidate.errors, 'error')}` };
}

function isStepOver({ weight, seconds, secondsSinceRequest, total, stable }: Step, rules: RolloutRules): boolean {
  if (total.requests - total.errors >= enoughAt(weight, rules)) return true;
  if (secondsSinceRequest >= rules.quietSeconds) return true;
  // Errors that are too few to judge by are given more time.
  const patience = rateOf(total) > rateOf(stable) ? 3 : 1;
  return seconds >= rules.stepSeconds * patience;
}

/** The lower the weight, the fewer good answers: what they tell is to be learnt by few visitors. */
function enoughAt(weight: number, { enoughGoodRequests }: RolloutRules): number {
  return Math.ceil(enoughGoodRequests * Math.min(1, weight / 50));
}

function rateOf({ requests, errors }: TrafficCounts): number {
  return requests === 0 ? 0 : errors / requests;
}

/** The first of `weights` above `weight`; 100 where there is none. */
export function nextWeight(weights: readonly number[], weight: number): number {
  return weights.find((candidate) => candidate > weight) ?? 100;
}

/** Whether even a kind reading of the new release's errors is above a harsh reading of the old one's. */
export function isClearlyWorse(
  candidate: TrafficCounts,
  stable: TrafficCounts,
  { fewestErrors, presumedErrorRate }: Pick<RolloutRules, 'fewestErrors' | 'presumedErrorRate'>,
): boolean {
  if (candidate.errors < fewestErrors) return false;
  const [kindest] = errorRateBounds(candidate);
  const harshest = stable.requests === 0 ? presumedErrorRate : errorRateBounds(stable)[1];
  return kindest > harshest;
}

/** Wilson score interval at 95%: honest with few requests, where a plain quotient is not. */
function errorRateBounds({ requests, errors }: TrafficCounts): [number, number] {
  if (requests === 0) return [0, 1];
  const z = 1.96;
  const rate = errors / requests;
  const scale = 1 + z ** 2 / requests;
  const middle = rate + z ** 2 / (2 * requests);
  const spread = z * Math.sqrt((rate * (1 - rate)) / requests + z ** 2 / (4 * requests ** 2));
  return [(middle - spread) / scale, (middle + spread) / scale];
}
