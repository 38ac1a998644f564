import { latencyBounds, latencyBucket } from '#shared/platform/latencies.ts';
import type { ReleaseTraffic } from '#shared/platform/traffic.ts';

/** Somewhere a request can be sent to: an app's instance, or the API. */
export interface Upstream {
  readonly address: { readonly host: string; readonly port: number } | { readonly socketPath: string };
  /** Shared by all that lead to one instance, so that it outlives a change of route. */
  readonly inFlight: { count: number };
  /** Shared by all instances of a release. */
  readonly traffic: { -readonly [Count in keyof ReleaseTraffic]: ReleaseTraffic[Count] } & { readonly latencies: number[] };
}

/** The next place to try; `tried` are those that could not be reached. Undefined when none is left. */
export type ChooseUpstream = (tried: readonly Upstream[]) => Upstream | undefined;

/** How an attempt on an upstream ended; 'unseen' is what never reached it and is tried again. */
export type AttemptOutcome = 'good' | 'failed' | 'unseen';

/**
 * Counts one attempt on an upstream as in flight until the returned function is called, and then, unless it went unseen,
 * as a request of its release. Calling it again is harmless.
 */
export function beginAttempt(upstream: Upstream): (outcome: AttemptOutcome) => void {
  const startedAt = performance.now();
  let ended = false;
  upstream.inFlight.count += 1;
  return (outcome) => {
    if (ended) return;
    ended = true;
    upstream.inFlight.count -= 1;
    if (outcome !== 'unseen') countRequest(upstream, outcome === 'failed', startedAt);
  };
}

/** @param startedAt milliseconds as `performance.now()` gives them */
export function countRequest({ traffic }: Upstream, failed: boolean, startedAt: number): void {
  traffic.requests += 1;
  if (failed) traffic.errors += 1;
  const milliseconds = performance.now() - startedAt;
  traffic.totalMilliseconds += milliseconds;
  const bucket = latencyBucket(milliseconds);
  traffic.latencies[bucket] = (traffic.latencies[bucket] ?? 0) + 1;
}

/** Of a release that was not asked yet. */
export function noTraffic(releaseVersion: number): Upstream['traffic'] {
  return { releaseVersion, requests: 0, errors: 0, totalMilliseconds: 0, latencies: [...latencyBounds.map(() => 0), 0] };
}
