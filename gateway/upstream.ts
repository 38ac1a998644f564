import { Agent } from 'node:http';
import type { ReleaseTraffic } from '#shared/platform/routing.ts';

/** Somewhere a request can be sent to: an app's instance, or the API. */
export interface Upstream {
  readonly address: { readonly host: string; readonly port: number } | { readonly socketPath: string };
  /** Shared by all that lead to one instance, so that it outlives a change of route. */
  readonly inFlight: { count: number };
  /** Shared by all instances of a release. */
  readonly traffic: { -readonly [Count in keyof ReleaseTraffic]: ReleaseTraffic[Count] };
}

/** The next place to try; `tried` are those that could not be reached. Undefined when none is left. */
export type ChooseUpstream = (tried: readonly Upstream[]) => Upstream | undefined;

export interface UpstreamAgents {
  /** Keeps connections; only for what may be sent again when a kept one turns out to be closed. */
  readonly kept: Agent;
  /** One connection a request: it cannot be stale, so that a POST never fails for a race that nobody caused. */
  readonly fresh: Agent;
}

export function createUpstreamAgents(): UpstreamAgents {
  return {
    // Node's own servers close after 5 s, gunicorn after 2 s: let go of idle ones before.
    kept: new Agent({ keepAlive: true, timeout: 1500, maxFreeSockets: 512, scheduling: 'lifo' }),
    fresh: new Agent({ keepAlive: false }),
  };
}

/**
 * Counts one attempt on an upstream as in flight until the returned function is called, and then as a request of its
 * release, failed or not. Calling it again is harmless.
 */
export function beginAttempt(upstream: Upstream): (failed: boolean) => void {
  const startedAt = performance.now();
  let ended = false;
  upstream.inFlight.count += 1;
  return (failed) => {
    if (ended) return;
    ended = true;
    upstream.inFlight.count -= 1;
    countRequest(upstream, failed, startedAt);
  };
}

/** @param startedAt milliseconds as `performance.now()` gives them */
export function countRequest({ traffic }: Upstream, failed: boolean, startedAt: number): void {
  traffic.requests += 1;
  if (failed) traffic.errors += 1;
  traffic.totalMilliseconds += performance.now() - startedAt;
}
