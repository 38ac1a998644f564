import {
  decideStep,
  defaultRolloutRules,
  measureStep,
  type StepStart,
  startOfStep,
} from '#shared/core/releases/rollout-rules.ts';
import type { RolloutFacts } from '#shared/platform/rollouts.ts';
import type { Order } from '#shared/platform/testing/roll-out.ts';

/** Judges the facts of one rollout as core does. */
export function createDecider(stepSeconds: number): (facts: RolloutFacts) => Order {
  let step: StepStart | undefined;
  return (facts) => {
    const now = new Date();
    step = startOfStep(facts, step, now);
    const asked = { candidate: 'cannot' as const, seconds: 0, hasHadVisitors: false, stableAnswersRoot: undefined };
    const rules = { ...defaultRolloutRules, stepSeconds, restartSeconds: 60 };
    const decision = decideStep({ ...measureStep(facts, step, now), asked }, rules);
    return decision.action === 'ask' ? { action: 'wait' } : decision;
  };
}
