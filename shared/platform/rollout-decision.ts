/** The pure half of a rollout: from what was measured to what is done next. */
import type { RolloutPlan } from '#shared/platform/workloads.ts';

export interface TrafficCounts {
  requests: number;
  errors: number;
}

export interface StepFacts {
  /** Traffic of the new release now, in percent. */
  weight: number;
  secondsOnStep: number;
  /** Since the app's last request, whichever release got it; Infinity when there was none since the rollout began. */
  secondsSinceRequest: number;
  /** Of the new release, on this step. */
  fresh: TrafficCounts;
  /** Of the old release, as far back as is known. */
  old: TrafficCounts;
  /** Why an instance of the new release is not up; undefined when all are. */
  crash: string | undefined;
}

export type StepDecision =
  | { action: 'wait' }
  /** `weight` 100 is the last. */
  /** `detail` is what it was judged by; left out where there was no traffic to learn from. */
  | { action: 'raise'; weight: number; detail?: string }
  | { action: 'abort'; detail: string };

/** So many good answers pass a step. */
const enoughGoodRequests = 20;
/** Fewer errors than this are bad luck. */
const fewestErrors = 3;
/** Without a request for this long there is nothing to learn from. */
const quietSeconds = 1;
/** Assumed of an old release that was never asked. */
const presumedErrorRate = 0.02;

export function decideStep(facts: StepFacts, plan: RolloutPlan): StepDecision {
  const { fresh, old } = facts;
  const judged = `${fresh.requests} requests, ${fresh.errors} errors`;
  if (facts.crash !== undefined) return { action: 'abort', detail: facts.crash };
  if (isClearlyWorse(fresh, old)) {
    return {
      action: 'abort',
      detail: `${judged} at ${facts.weight}%, where the release before had ${old.errors} in ${old.requests}`,
    };
  }
  const weight = nextWeight(plan.weights, facts.weight);
  if (fresh.requests - fresh.errors >= enoughGoodRequests) return { action: 'raise', weight, detail: judged };
  if (facts.secondsSinceRequest >= quietSeconds) return { action: 'raise', weight };
  if (facts.secondsOnStep >= plan.stepSeconds) return { action: 'raise', weight, detail: judged };
  return { action: 'wait' };
}

/** The first of the plan above `weight`; 100 where the plan has none. */
export function nextWeight(weights: readonly number[], weight: number): number {
  return weights.find((candidate) => candidate > weight) ?? 100;
}

/** Whether even a kind reading of the new release's errors is above a harsh reading of the old one's. */
export function isClearlyWorse(fresh: TrafficCounts, old: TrafficCounts): boolean {
  if (fresh.errors < fewestErrors) return false;
  const [kindest] = errorRateBounds(fresh);
  const harshest = old.requests === 0 ? presumedErrorRate : errorRateBounds(old)[1];
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
