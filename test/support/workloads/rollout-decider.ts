import {
  decideStep,
  defaultRolloutRules,
  measureStep,
  type StepDecision,
  type StepStart,
  startOfStep,
} from '#shared/core/releases/rollout-rules.ts';
import type { RolloutFacts } from '#shared/platform/rollouts.ts';

/** Judges the facts of one rollout as core does. */
export function createDecider(stepSeconds: number): (facts: RolloutFacts) => StepDecision {
  let step: StepStart | undefined;
  return (facts) => {
    const now = new Date();
    step = startOfStep(facts, step, now);
    return decideStep(measureStep(facts, step, now), { ...defaultRolloutRules, stepSeconds });
  };
}
