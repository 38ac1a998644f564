import type { ReleaseTraffic } from '#shared/platform/traffic.ts';

/**
 * Adds up what several gateways have counted. What a gateway counted before it ended stays in the sum, as long as others count requests
 * of that release: a sum that fell would look like a counter that began at zero again.
 */
export class GatewayTraffic {
  /** The last answer of each gateway, by what was asked. */
  readonly #seen = new Map<string, Map<string, readonly ReleaseTraffic[]>>();

  /**
   * @param question the same for the same app
   * @param answers by gateway, of those that run
   * @returns the traffic of the releases in these answers
   */
  add(question: string, answers: ReadonlyMap<string, readonly ReleaseTraffic[]>): readonly ReleaseTraffic[] {
    const current = new Set([...answers.values()].flatMap((releases) => releases.map(({ releaseVersion }) => releaseVersion)));
    const seen = new Map(this.#seen.get(question));
    for (const [gateway, releases] of answers) seen.set(gateway, releases);
    for (const [gateway, releases] of seen) {
      const kept = releases.filter(({ releaseVersion }) => current.has(releaseVersion));
      if (kept.length === 0) seen.delete(gateway);
      else seen.set(gateway, kept);
    }
    if (seen.size === 0) this.#seen.delete(question);
    else this.#seen.set(question, seen);

    const sums = new Map<number, ReleaseTraffic>();
    for (const releases of seen.values())
      for (const release of releases) sums.set(release.releaseVersion, sum(sums.get(release.releaseVersion), release));
    // In the order of the gateway that runs.
    const [first = []] = answers.values();
    const order = new Set([...first.map(({ releaseVersion }) => releaseVersion), ...current]);
    return [...order].flatMap((version) => sums.get(version) ?? []);
  }
}

function sum(one: ReleaseTraffic | undefined, other: ReleaseTraffic): ReleaseTraffic {
  if (one === undefined) return other;
  const lastRequestAt = Math.max(one.lastRequestAt ?? 0, other.lastRequestAt ?? 0);
  return {
    releaseVersion: one.releaseVersion,
    requests: one.requests + other.requests,
    errors: one.errors + other.errors,
    totalMilliseconds: one.totalMilliseconds + other.totalMilliseconds,
    latencies: Array.from(
      { length: Math.max(one.latencies.length, other.latencies.length) },
      (_, bucket) => (one.latencies[bucket] ?? 0) + (other.latencies[bucket] ?? 0),
    ),
    ...(lastRequestAt === 0 ? {} : { lastRequestAt }),
  };
}
