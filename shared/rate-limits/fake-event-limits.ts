import type { EventLimits } from '#shared/rate-limits/event-limits.ts';

/** In-memory event limits of one process, for tests. @param now current time in milliseconds since the epoch */
export function createFakeEventLimits(now: () => number = Date.now): EventLimits {
  const windows = new Map<string, { count: number; until: number }>();
  return {
    async take({ name, limit, windowSeconds }, key) {
      const found = windows.get(`${name}:${key}`);
      const window = found !== undefined && found.until > now() ? found : { count: 0, until: now() + windowSeconds * 1000 };
      windows.set(`${name}:${key}`, window);
      window.count += 1;
      return {
        granted: window.count <= limit,
        remaining: Math.max(0, limit - window.count),
        resetMilliseconds: window.until - now(),
      };
    },
    async giveBack({ name }, key) {
      const window = windows.get(`${name}:${key}`);
      if (window !== undefined) window.count -= 1;
    },
    refusedMilliseconds({ name, limit }, key) {
      const window = windows.get(`${name}:${key}`);
      return window === undefined || window.count < limit ? 0 : Math.max(0, window.until - now());
    },
    async sweep() {
      const past = [...windows].filter(([, { until }]) => until <= now());
      for (const [key] of past) windows.delete(key);
      return past.length;
    },
  };
}
