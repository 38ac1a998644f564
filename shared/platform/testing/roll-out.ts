import type { RolloutFacts, Rollouts } from '#shared/platform/rollouts.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';

/** What core answers to facts; see shared/core/releases/rollout-rules.ts. */
export type Order = { action: 'wait' | 'advance' | 'promote' } | { action: 'abort'; cause: string };

/** How a test rolls out. */
export interface RollOutOptions {
  /** Those of SPEC.md §3 when left out. */
  weights?: readonly number[];
  /** What is done on facts of a rollout that is under way; `passEachStep` when left out. */
  decide?(facts: RolloutFacts): Order;
  signal?: AbortSignal;
}

/** Starts a rollout, or takes one up, and gives orders until it is over. Yields each fact before it is answered. */
export async function* rollOut(
  rollouts: Rollouts,
  spec: WorkloadSpec,
  { weights = [10, 25, 50, 100], decide = passEachStep, signal = new AbortController().signal }: RollOutOptions = {},
): AsyncGenerator<RolloutFacts, void, undefined> {
  await rollouts.startRollout(spec, weights);
  for await (const facts of rollouts.watchRollout(spec.appId, signal)) {
    yield facts;
    if (facts.phase !== 'starting' && facts.phase !== 'serving') continue;
    const order = decide(facts);
    if (order.action === 'advance') await rollouts.advanceRollout(spec.appId, facts.releaseId, facts.weight);
    if (order.action === 'promote') await rollouts.promoteRollout(spec.appId, facts.releaseId);
    if (order.action === 'abort') await rollouts.abortRollout(spec.appId, facts.releaseId, order.cause);
  }
}

/** Goes on wherever nothing crashed, whatever the traffic says. */
export function passEachStep({ phase, weight, crash }: RolloutFacts): Order {
  if (crash !== undefined) return { action: 'abort', cause: crash };
  if (phase !== 'serving') return { action: 'wait' };
  return { action: weight < 100 ? 'advance' : 'promote' };
}
