export interface Count {
  /** Requests made. */
  begun: number;
  /** Of these, not answered when it happened, or answered and their work not done yet. */
  cut: number;
}

/** What came of rounds, of several worlds together. */
export interface Tally {
  /** How often the control plane, its connections or its database were killed in the middle of work. */
  strikes: number;
  /** By where it struck. */
  readonly points: Map<string, number>;
  /** By area. */
  readonly acts: Map<string, Count>;
  fscks: number;
  /** From the strike, or the start after it, until nothing was under way any more. */
  longestResumeSeconds: number;
  readonly violations: readonly string[];
  addPoint(point: string): void;
  addAct(area: string, count: Count): void;
  addViolation(violation: string): void;
}

/** @param tell is called with each violation at once */
export function newTally(tell: (violation: string) => void = () => undefined): Tally {
  const violations: string[] = [];
  const points = new Map<string, number>();
  const acts = new Map<string, Count>();
  return {
    strikes: 0,
    points,
    acts,
    fscks: 0,
    longestResumeSeconds: 0,
    violations,
    addPoint(point) {
      this.strikes += 1;
      points.set(point, (points.get(point) ?? 0) + 1);
    },
    addAct(area, { begun, cut }) {
      const known = acts.get(area) ?? { begun: 0, cut: 0 };
      acts.set(area, { begun: known.begun + begun, cut: known.cut + cut });
    },
    addViolation(violation) {
      violations.push(violation);
      tell(violation);
    },
  };
}
