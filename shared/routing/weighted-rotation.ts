/** Selects members by weight. */
export interface WeightedRotation<Member> {
  /** The next member. Undefined when no member has a weight above 0. */
  next(): Member | undefined;
}

/**
 * Smooth weighted round robin: in any 100 selections in a row each member has exactly its percentage, spread evenly. So a
 * canary of 10% gets every tenth request, and not ten requests at once.
 */
export function createWeightedRotation<Member extends { readonly weight: number }>(
  members: readonly Member[],
): WeightedRotation<Member> {
  const candidates = members.filter((member) => member.weight > 0).map((member) => ({ member, credit: 0 }));
  const total = candidates.reduce((sum, { member }) => sum + member.weight, 0);
  const only = candidates.length === 1 ? candidates[0]?.member : undefined;
  return {
    next() {
      if (only !== undefined) return only;
      let best = candidates[0];
      if (best === undefined) return undefined;
      for (const candidate of candidates) {
        candidate.credit += candidate.member.weight;
        if (candidate.credit > best.credit) best = candidate;
      }
      best.credit -= total;
      return best.member;
    },
  };
}
