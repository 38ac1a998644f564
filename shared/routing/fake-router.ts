import type { AppId } from '#shared/ids.ts';
import { latencyBucket } from '#shared/platform/latencies.ts';
import type { ReleaseTraffic } from '#shared/platform/traffic.ts';
import type { AppRoute, Backend, BackendInstance } from '#shared/routing/app-route.ts';
import { checkRoute, refuseTakenHosts } from '#shared/routing/check-route.ts';
import type { Router } from '#shared/routing/router.ts';
import { hash, selectInstance, selectRelease } from '#shared/routing/visitor-buckets.ts';
import { createWeightedRotation, type WeightedRotation } from '#shared/routing/weighted-rotation.ts';

/** A router that opens no port: tests make requests by calling it. */
export interface FakeRouter extends Router {
  /**
   * Begins a request; the instance is chosen as the gateway does. Undefined where the gateway would answer by itself.
   * @param bucket of the visitor. Left out: each request is of another visitor, spread evenly
   */
  beginRequest(host: string, bucket?: number): FakeRequest | undefined;
}

export interface FakeRequest {
  readonly appId: AppId;
  readonly releaseVersion: number;
  readonly instance: BackendInstance;
  /** Ends the request: status 200 and 0 ms unless given. Calling it again has no effect. */
  /** @param outcome `path`: '/' for a GET of the first page */
  end(outcome?: { status?: number; milliseconds?: number; path?: string }): void;
}

interface Entry {
  readonly route: AppRoute;
  readonly rotation: WeightedRotation<Backend>;
  readonly traffic: ReadonlyMap<number, Mutable<ReleaseTraffic>>;
  readonly past: ReadonlyMap<number, Mutable<ReleaseTraffic>>;
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] } & { readonly latencies: number[] };

/** The expiry of every certificate. */
const certificateExpiry = new Date('2027-01-01T00:00:00.000Z');

/** A router without a gateway. */
export function createFakeRouter(): FakeRouter {
  const entries = new Map<AppId, Entry>();
  const certificates = new Set<string>();
  const inFlight = new Map<string, number>();
  let requests = 0;

  const ownerOf = (host: string): AppRoute | undefined =>
    entries
      .values()
      .map((entry) => entry.route)
      .find((route) => route.hosts.includes(host));

  return {
    async applyRoute(route) {
      checkRoute(route);
      refuseTakenHosts(route, ownerOf);
      const before = entries.get(route.appId);
      const known = new Map([...(before?.past ?? []), ...(before?.traffic ?? [])]);
      const traffic = new Map(
        route.backends.map(({ releaseVersion }) => [
          releaseVersion,
          known.get(releaseVersion) ?? { releaseVersion, requests: 0, errors: 0, totalMilliseconds: 0, latencies: [] },
        ]),
      );
      const past = new Map([...known].filter(([releaseVersion]) => !traffic.has(releaseVersion)));
      entries.set(route.appId, {
        route: structuredClone(route),
        rotation: createWeightedRotation(route.backends),
        traffic,
        past,
      });
    },
    async deleteRoute(appId) {
      return entries.delete(appId);
    },
    async readRoute(appId) {
      return structuredClone(entries.get(appId)?.route);
    },
    async listRoutes() {
      return [...entries.values()].map((entry) => structuredClone(entry.route));
    },
    async readTraffic(appId) {
      return [...(entries.get(appId)?.traffic.values() ?? [])].map((counts) => structuredClone(counts));
    },
    async readPastTraffic(appId) {
      return [...(entries.get(appId)?.past.values() ?? [])].map((counts) => structuredClone(counts));
    },
    async readCertificate(host) {
      if (ownerOf(host) === undefined) return undefined;
      certificates.add(host);
      return { expiresAt: certificateExpiry };
    },
    async deleteCertificate(host) {
      return certificates.delete(host);
    },
    async readInFlight(instanceKey) {
      return inFlight.get(instanceKey) ?? 0;
    },
    beginRequest(host, bucket) {
      const owner = ownerOf(host);
      const entry = owner === undefined ? undefined : entries.get(owner.appId);
      const visitor = entry?.route.sessionAffinity === false ? undefined : bucket;
      const backend = entry && (visitor === undefined ? entry.rotation.next() : selectRelease(newestFirst(entry.route), visitor));
      const instance =
        visitor === undefined ? backend?.instances[requests++ % backend.instances.length] : instanceOf(backend, visitor);
      if (entry === undefined || backend === undefined || instance === undefined) return undefined;
      inFlight.set(instance.key, (inFlight.get(instance.key) ?? 0) + 1);
      let ended = false;
      return {
        appId: entry.route.appId,
        releaseVersion: backend.releaseVersion,
        instance,
        end({ status = 200, milliseconds = 0, path = '/other' } = {}) {
          if (ended) return;
          ended = true;
          inFlight.set(instance.key, (inFlight.get(instance.key) ?? 1) - 1);
          const counts = entry.traffic.get(backend.releaseVersion);
          if (counts === undefined) return;
          counts.requests += 1;
          counts.lastRequestAt = Date.now();
          counts.errors += status >= 500 ? 1 : 0;
          if (path === '/' && status < 500) counts.answersRoot = true;
          counts.totalMilliseconds += milliseconds;
          const bucket = latencyBucket(milliseconds);
          for (let each = counts.latencies.length; each <= bucket; each += 1) counts.latencies.push(0);
          counts.latencies[bucket] = (counts.latencies[bucket] ?? 0) + 1;
        },
      };
    },
  };
}

function newestFirst({ backends }: AppRoute): Backend[] {
  return backends.toSorted((one, other) => other.releaseVersion - one.releaseVersion);
}

function instanceOf(backend: Backend | undefined, bucket: number): BackendInstance | undefined {
  const instances = backend?.instances.map((instance) => ({ instance, keyHash: hash(instance.key) })) ?? [];
  return selectInstance(instances, bucket)?.instance;
}
