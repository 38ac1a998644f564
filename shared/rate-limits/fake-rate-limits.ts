import { millisecondsPerHour } from '#shared/durations.ts';
import type { RateLimits } from '#shared/rate-limits/rate-limits.ts';
import { createRefusals } from '#shared/rate-limits/refusals.ts';
import { createSlidingLogLimits, type SlidingLog } from '#shared/rate-limits/sliding-log-limits.ts';

/** In-memory rate limits of one process, for tests. @param now current time in milliseconds since the epoch */
export function createFakeRateLimits(now: () => number = Date.now): RateLimits {
  return createSlidingLogLimits(createFakeLog(now), createRefusals(now));
}

const idleMilliseconds = millisecondsPerHour;

function createFakeLog(now: () => number): SlidingLog {
  const calls = new Map<string, number[]>();
  return {
    async hit(key, limit, windowMilliseconds) {
      const at = now();
      const kept = (calls.get(key) ?? []).filter((call) => call > at - windowMilliseconds);
      const granted = kept.length < limit;
      if (granted) kept.push(at);
      calls.set(key, kept);
      return { granted, count: kept.length, resetMilliseconds: (kept[0] ?? at) + windowMilliseconds - at };
    },
    async sweep() {
      const idle = [...calls].filter(([, kept]) => (kept.at(-1) ?? 0) < now() - idleMilliseconds);
      for (const [key] of idle) calls.delete(key);
      return idle.length;
    },
  };
}
