import type { AppId } from '#shared/ids.ts';
import type { ReleaseTraffic } from '#shared/platform/traffic.ts';
import type { AppRoute } from '#shared/routing/app-route.ts';
import { checkRoute, refuseTakenHosts } from '#shared/routing/check-route.ts';
import { createUpstreamChoice, type UpstreamChoice } from './choose-upstream.ts';
import { noTraffic, type Upstream } from './upstream.ts';

/** The route of an app, and how its requests are distributed. */
export interface ServedApp {
  readonly route: AppRoute;
  readonly upstreams: UpstreamChoice;
}

/** The counts of an earlier gateway, which may be of a version that did not count latencies. */
export type EarlierTraffic = Omit<ReleaseTraffic, 'latencies'> & Partial<Pick<ReleaseTraffic, 'latencies'>>;

/** All routes, with a look-up for each request. */
export interface RouteTable {
  /** @throws AppError as `checkRoute` and `refuseTakenHosts` */
  check(route: AppRoute): void;
  /** Replaces the app's route; checked before. */
  apply(route: AppRoute): void;
  /** Whether there was a route. */
  delete(appId: AppId): boolean;
  /** @param host as `hostOfAuthority` returns it */
  findByHost(host: string): ServedApp | undefined;
  find(appId: AppId): ServedApp | undefined;
  list(): readonly AppRoute[];
  traffic(appId: AppId): readonly ReleaseTraffic[];
  /** The latest releases that have left the route. */
  pastTraffic(appId: AppId): readonly ReleaseTraffic[];
  inFlight(instanceKey: string): number;
  /** Continues the counts of an earlier gateway. */
  restoreTraffic(appId: AppId, traffic: readonly EarlierTraffic[]): void;
}

interface Entry extends ServedApp {
  readonly traffic: ReadonlyMap<number, Upstream['traffic']>;
  /** Oldest first. */
  readonly past: Map<number, Upstream['traffic']>;
}

/** More than an app replaces between two readings. */
const pastReleases = 8;

/** An empty table. */
export function createRouteTable(): RouteTable {
  const entries = new Map<AppId, Entry>();
  const byHost = new Map<string, Entry>();
  const inFlight = new Map<string, Upstream['inFlight']>();

  const remove = (appId: AppId): boolean => {
    const entry = entries.get(appId);
    for (const host of entry?.route.hosts ?? []) byHost.delete(host);
    return entries.delete(appId);
  };

  const forgetIdleInstances = (): void => {
    const routed = new Set([...entries.values()].flatMap(({ route }) => instancesOf(route).map(({ key }) => key)));
    for (const [key, { count }] of inFlight) if (count === 0 && !routed.has(key)) inFlight.delete(key);
  };

  const serve = (route: AppRoute, counts: Entry['traffic']): UpstreamChoice => {
    const backends = route.backends.map(({ releaseVersion, weight, instances }) => {
      const traffic = counts.get(releaseVersion) ?? noTraffic(releaseVersion);
      return {
        releaseVersion,
        weight,
        instances: instances.map(({ key, host, port }) => {
          const counter = inFlight.get(key) ?? { count: 0 };
          inFlight.set(key, counter);
          return { key, upstream: { address: { host, port }, inFlight: counter, traffic } };
        }),
      };
    });
    return createUpstreamChoice(backends, route.sessionAffinity ?? true);
  };

  return {
    check(route) {
      checkRoute(route);
      refuseTakenHosts(route, (host) => byHost.get(host)?.route);
    },
    apply(route) {
      const before = entries.get(route.appId);
      const known = new Map([...(before?.past ?? []), ...(before?.traffic ?? [])]);
      const traffic = new Map(
        route.backends.map(({ releaseVersion }) => [releaseVersion, known.get(releaseVersion) ?? noTraffic(releaseVersion)]),
      );
      const past = new Map([...known].filter(([releaseVersion]) => !traffic.has(releaseVersion)).slice(-pastReleases));
      const entry: Entry = { route, upstreams: serve(route, traffic), traffic, past };
      remove(route.appId);
      entries.set(route.appId, entry);
      for (const host of route.hosts) byHost.set(host, entry);
      forgetIdleInstances();
    },
    delete(appId) {
      const existed = remove(appId);
      forgetIdleInstances();
      return existed;
    },
    findByHost: (host) => byHost.get(host),
    find: (appId) => entries.get(appId),
    list: () => [...entries.values()].map(({ route }) => route),
    traffic: (appId) => [...(entries.get(appId)?.traffic.values() ?? [])],
    pastTraffic: (appId) => [...(entries.get(appId)?.past.values() ?? [])],
    inFlight: (instanceKey) => inFlight.get(instanceKey)?.count ?? 0,
    restoreTraffic(appId, traffic) {
      const entry = entries.get(appId);
      if (entry === undefined) return;
      for (const earlier of traffic) {
        const { releaseVersion } = earlier;
        const counts = entry.traffic.get(releaseVersion) ?? noTraffic(releaseVersion);
        if (!entry.traffic.has(releaseVersion)) entry.past.set(releaseVersion, counts);
        counts.requests += earlier.requests;
        counts.errors += earlier.errors;
        if (earlier.answersRoot === true) counts.answersRoot = true;
        counts.lastRequestAt ??= earlier.lastRequestAt ?? 0;
        counts.totalMilliseconds += earlier.totalMilliseconds;
        for (const [bucket, count] of (earlier.latencies ?? []).entries())
          counts.latencies[bucket] = (counts.latencies[bucket] ?? 0) + count;
      }
    },
  };
}

function instancesOf(route: AppRoute) {
  return route.backends.flatMap((backend) => backend.instances);
}
