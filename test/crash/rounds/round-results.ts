export interface RequestCounts {
  /** Requests made. */
  started: number;
  /** Of these, not answered at the time of the fault, or answered with their work not finished. */
  interrupted: number;
}

/** Results of rounds, also of several environments together. */
export interface RoundResults {
  /** How often the control plane, its connections or its database were killed in the middle of work. */
  faults: number;
  /** Faults by the point at which they were injected. */
  readonly faultsByPoint: Map<string, number>;
  readonly requestsByKind: Map<string, RequestCounts>;
  /** Repositories that `git fsck` has checked. */
  checkedRepositories: number;
  /** The longest time from a fault, or from the start after it, until nothing was under way any more. */
  longestResumeSeconds: number;
  readonly violations: readonly string[];
  addFault(point: string): void;
  addOperation(kind: string, counts: RequestCounts): void;
  addViolation(violation: string): void;
}

/** @param onViolation is called with each violation at once */
export function createRoundResults(onViolation: (violation: string) => void = () => undefined): RoundResults {
  const violations: string[] = [];
  const faultsByPoint = new Map<string, number>();
  const requestsByKind = new Map<string, RequestCounts>();
  return {
    faults: 0,
    faultsByPoint,
    requestsByKind,
    checkedRepositories: 0,
    longestResumeSeconds: 0,
    violations,
    addFault(point) {
      this.faults += 1;
      faultsByPoint.set(point, (faultsByPoint.get(point) ?? 0) + 1);
    },
    addOperation(kind, { started, interrupted }) {
      const known = requestsByKind.get(kind) ?? { started: 0, interrupted: 0 };
      requestsByKind.set(kind, { started: known.started + started, interrupted: known.interrupted + interrupted });
    },
    addViolation(violation) {
      violations.push(violation);
      onViolation(violation);
    },
  };
}
