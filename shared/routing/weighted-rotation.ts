/**
 * Takes turns by weight: of any 100 turns in a row each member gets exactly its percentage, spread evenly
 * (smooth weighted round robin), so that a 10% canary sees every tenth request and not ten at once.
 */
export interface WeightedRotation<Member> {
  /** Undefined when no member has a weight above 0. */
  next(): Member | undefined;
}

export function createWeightedRotation<Member extends { readonly weight: number }>(
  members: readonly Member[],
): WeightedRotation<Member> {
  const turns = members.filter((member) => member.weight > 0).map((member) => ({ member, credit: 0 }));
  const total = turns.reduce((sum, turn) => sum + turn.member.weight, 0);
  const only = turns.length === 1 ? turns[0]?.member : undefined;
  return {
    next() {
      if (only !== undefined) return only;
      let best = turns[0];
      if (best === undefined) return undefined;
      for (const turn of turns) {
        turn.credit += turn.member.weight;
        if (turn.credit > best.credit) best = turn;
      }
      best.credit -= total;
      return best.member;
    },
  };
}
