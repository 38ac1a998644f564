const mostRefusals = 10_000;

/** Remembers which keys are refused for how long, so that a refused key costs no query. Only a cache: it may forget. */
export interface Refusals {
  /** Milliseconds; 0 if not refused. If the clock is set back, the refusal ends instead of lasting longer. */
  remaining(name: string): number;
  remember(name: string, milliseconds: number): void;
}

/** @param now current time in milliseconds since the epoch */
export function createRefusals(now: () => number): Refusals {
  const refusals = new Map<string, { from: number; until: number }>();
  const forgetPast = (): void => {
    for (const [name, { until }] of refusals) if (until <= now()) refusals.delete(name);
    if (refusals.size > mostRefusals) refusals.clear();
  };
  return {
    remaining(name) {
      const refusal = refusals.get(name);
      const at = now();
      return refusal === undefined || at < refusal.from ? 0 : Math.max(0, refusal.until - at);
    },
    remember(name, milliseconds) {
      const from = now();
      refusals.set(name, { from, until: from + milliseconds });
      if (refusals.size > mostRefusals) forgetPast();
    },
  };
}
