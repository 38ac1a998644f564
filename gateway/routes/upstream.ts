import { latencyBounds, latencyBucket } from '#shared/platform/latencies.ts';
import type { ReleaseTraffic } from '#shared/platform/traffic.ts';

/** A server that requests are forwarded to: an instance of an app, or the API. */
export interface Upstream {
  readonly address: { readonly host: string; readonly port: number } | { readonly socketPath: string };
  /** Requests in flight. Shared by all upstreams of one instance, so that the count survives a change of route. */
  readonly inFlight: { count: number };
  /** Shared by all instances of a release. */
  readonly traffic: { -readonly [Count in keyof ReleaseTraffic]: ReleaseTraffic[Count] } & { readonly latencies: number[] };
}

/** Chooses the next upstream for one request; `tried` are those that could not be reached. Undefined when none is left. */
export type ChooseUpstream = (tried: readonly Upstream[]) => Upstream | undefined;

/** How a request to an upstream ended. 'not-received': it never arrived and is sent again. */
export type AttemptOutcome = 'succeeded' | 'failed' | 'not-received';

/**
 * Counts a request as in flight until the returned function is called with its outcome, and then as a request of the release
 * unless it was not received. Calling the function again has no effect.
 */
export function beginAttempt(upstream: Upstream): (outcome: AttemptOutcome) => void {
  const startedAt = performance.now();
  let ended = false;
  upstream.inFlight.count += 1;
  return (outcome) => {
    if (ended) return;
    ended = true;
    upstream.inFlight.count -= 1;
    if (outcome !== 'not-received') countRequest(upstream, outcome === 'failed', startedAt);
  };
}

/** Counts a request that has ended. @param startedAt as `performance.now()` returned it */
export function countRequest({ traffic }: Upstream, failed: boolean, startedAt: number): void {
  traffic.requests += 1;
  traffic.lastRequestAt = Date.now();
  if (failed) traffic.errors += 1;
  const milliseconds = performance.now() - startedAt;
  traffic.totalMilliseconds += milliseconds;
  const bucket = latencyBucket(milliseconds);
  traffic.latencies[bucket] = (traffic.latencies[bucket] ?? 0) + 1;
}

/** The counts of a release without requests. */
export function noTraffic(releaseVersion: number): Upstream['traffic'] {
  return { releaseVersion, requests: 0, errors: 0, totalMilliseconds: 0, latencies: [...latencyBounds.map(() => 0), 0] };
}
