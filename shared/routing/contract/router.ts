import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '#shared/errors.ts';
import { type AppId, newUuid } from '#shared/ids.ts';
import type { AppRoute, Backend } from '#shared/routing/app-route.ts';
import type { Router } from '#shared/routing/router.ts';

export interface RouterHarness {
  readonly router: Router;
  /** Starts an instance that answers `visit` and `hold`. */
  startInstance(key: string): Promise<{ host: string; port: number }>;
  /** A request that the app answers with `status` (200 by default). Resolves when it is counted. @param bucket of the visitor */
  visit(host: string, status?: number, bucket?: number): Promise<void>;
  /** A request that is in flight when this resolves. `end` ends it, and resolves when it is no longer counted as such. */
  hold(host: string): Promise<{ end(): Promise<void> }>;
  stop(): Promise<void>;
}

/** The contract of the router port, for the fake and for the gateway process. */
export function describeRouter(name: string, startHarness: () => Promise<RouterHarness>): void {
  describe(`router contract: ${name}`, () => {
    let harness: RouterHarness;
    let router: Router;
    beforeAll(async () => {
      harness = await startHarness();
      router = harness.router;
    });
    afterAll(() => harness?.stop());

    const backend = async (releaseVersion: number, weight: number): Promise<Backend> => {
      const key = newUuid();
      return { releaseVersion, weight, instances: [{ key, ...(await harness.startInstance(key)) }] };
    };
    const routeOf = (backends: readonly Backend[], appId: AppId = newUuid()): AppRoute => {
      const appName = `app-${appId.slice(0, 8)}`;
      return { appId, appName, hosts: [`${appName}.apps.localhost`], backends };
    };
    const hostOf = (route: AppRoute): string => route.hosts[0] ?? '';

    it('reads back exactly the route that was applied, and lists it', async () => {
      const route = routeOf([await backend(1, 90), await backend(2, 10)]);
      await router.applyRoute(route);
      expect(await router.readRoute(route.appId)).toEqual(route);
      expect(await router.listRoutes()).toContainEqual(route);
    });

    it('accepts a route without backends, for an app without a deploy', async () => {
      const route = routeOf([]);
      await router.applyRoute(route);
      expect(await router.readRoute(route.appId)).toEqual(route);
      expect(await router.readTraffic(route.appId)).toEqual([]);
    });

    it('replaces the whole route of an app when applied again', async () => {
      const before = routeOf([await backend(1, 100)]);
      await router.applyRoute(before);
      const after = { ...routeOf([await backend(2, 100)], before.appId), hosts: ['renamed.example.com'] };
      await router.applyRoute(after);
      expect(await router.readRoute(before.appId)).toEqual(after);
      expect((await router.listRoutes()).filter((route) => route.appId === before.appId)).toHaveLength(1);
    });

    it('reports whether a deleted route existed', async () => {
      const route = routeOf([]);
      await router.applyRoute(route);
      expect(await router.deleteRoute(route.appId)).toBe(true);
      expect(await router.deleteRoute(route.appId)).toBe(false);
      expect(await router.readRoute(route.appId)).toBeUndefined();
    });

    it('refuses a host that belongs to another app, and changes neither route', async () => {
      const owner = routeOf([]);
      await router.applyRoute(owner);
      const thief = { ...routeOf([]), hosts: owner.hosts };
      const refusal = await router.applyRoute(thief).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(AppError);
      expect(refusal).toMatchObject({ code: 'conflict' });
      expect(await router.readRoute(owner.appId)).toEqual(owner);
      expect(await router.readRoute(thief.appId)).toBeUndefined();
    });

    it('frees the hosts of a deleted route', async () => {
      const first = routeOf([]);
      await router.applyRoute(first);
      await router.deleteRoute(first.appId);
      const second = { ...routeOf([]), hosts: first.hosts };
      await router.applyRoute(second);
      expect(await router.readRoute(second.appId)).toEqual(second);
    });

    it('refuses weights that do not add up to 100, invalid host names and repeated releases', async () => {
      const good = await backend(1, 50);
      const bad: AppRoute[] = [
        routeOf([good]),
        routeOf([good, good]),
        { ...routeOf([]), hosts: ['UPPER.example.com'] },
        { ...routeOf([]), hosts: ['with-port.example.com:80'] },
        { ...routeOf([]), hosts: [] },
      ];
      for (const route of bad) {
        await expect(router.applyRoute(route)).rejects.toMatchObject({ code: 'internal' });
        expect(await router.readRoute(route.appId)).toBeUndefined();
      }
    });

    it('counts requests and failures by release, and continues after a change of weights', async () => {
      const [old, fresh] = [await backend(1, 100), await backend(2, 100)];
      const route = routeOf([old]);
      await router.applyRoute(route);
      await harness.visit(hostOf(route));
      await harness.visit(hostOf(route), 503);
      await harness.visit(hostOf(route), 404);
      await router.applyRoute({ ...route, backends: [{ ...old, weight: 0 }, fresh] });
      await harness.visit(hostOf(route), 500);
      const traffic = (await router.readTraffic(route.appId)).toSorted((a, b) => a.releaseVersion - b.releaseVersion);
      expect(traffic).toMatchObject([
        { releaseVersion: 1, requests: 3, errors: 1 },
        { releaseVersion: 2, requests: 1, errors: 1 },
      ]);
      await router.applyRoute({ ...route, backends: [fresh] });
      expect(await router.readTraffic(route.appId)).toMatchObject([{ releaseVersion: 2, requests: 1, errors: 1 }]);
      for (const { requests, latencies } of traffic) expect(latencies.reduce((sum, count) => sum + count, 0)).toBe(requests);
    });

    it('keeps the counts of releases that left the route, and continues them when one returns', async () => {
      const [old, fresh] = [await backend(1, 100), await backend(2, 100)];
      const route = routeOf([old]);
      await router.applyRoute(route);
      expect(await router.readPastTraffic(route.appId)).toEqual([]);
      await harness.visit(hostOf(route), 503);
      const slow = await harness.hold(hostOf(route));
      await router.applyRoute({ ...route, backends: [fresh] });
      await harness.visit(hostOf(route));
      await slow.end();
      expect(await router.readPastTraffic(route.appId)).toMatchObject([{ releaseVersion: 1, requests: 2, errors: 1 }]);
      await router.applyRoute(route);
      expect(await router.readTraffic(route.appId)).toMatchObject([{ releaseVersion: 1, requests: 2 }]);
      expect(await router.readPastTraffic(route.appId)).toMatchObject([{ releaseVersion: 2, requests: 1 }]);
    });

    it('has a certificate for each host of a route, and for no other', async () => {
      const route = { ...routeOf([await backend(1, 100)]), hosts: [`a-${newUuid()}.example.com`, `b-${newUuid()}.example.com`] };
      await router.applyRoute(route);
      for (const host of route.hosts) {
        const certificate = await router.readCertificate(host);
        expect(certificate?.expiresAt.getTime()).toBeGreaterThan(Date.now());
      }
      expect(await router.readCertificate(`c-${newUuid()}.example.com`)).toBeUndefined();
    });

    it('deletes the certificate of a host, and issues another where the host has a route', async () => {
      const route = routeOf([await backend(1, 100)]);
      await router.applyRoute(route);
      expect(await router.deleteCertificate(hostOf(route))).toBe(false);
      await router.readCertificate(hostOf(route));
      expect(await router.deleteCertificate(hostOf(route))).toBe(true);
      expect(await router.deleteCertificate(hostOf(route))).toBe(false);
      expect(await router.readCertificate(hostOf(route))).toBeDefined();
      await router.deleteRoute(route.appId);
      expect(await router.deleteCertificate(hostOf(route))).toBe(true);
      expect(await router.readCertificate(hostOf(route))).toBeUndefined();
    });

    const requestsOf = async ({ appId }: AppRoute) =>
      Object.fromEntries((await router.readTraffic(appId)).map(({ releaseVersion, requests }) => [releaseVersion, requests]));

    it('splits visitors exactly by weight', async () => {
      const route = routeOf([await backend(1, 75), await backend(2, 25)]);
      await router.applyRoute(route);
      for (let visitor = 0; visitor < 100; visitor++) await harness.visit(hostOf(route), 200, visitor * 100);
      expect(await requestsOf(route)).toEqual({ 1: 75, 2: 25 });
    });

    it('sends a visitor to one release, and from the new one never back to the old while its weight rises', async () => {
      const [old, fresh] = [await backend(1, 100), await backend(2, 100)];
      const route = routeOf([old, fresh]);
      const visitors = [0, 2500, 5000, 7500];
      const served = new Map(visitors.map((visitor) => [visitor, [] as number[]]));
      for (const weight of [10, 25, 50, 75, 100]) {
        await router.applyRoute({
          ...route,
          backends: [
            { ...old, weight: 100 - weight },
            { ...fresh, weight },
          ],
        });
        for (const visitor of visitors) {
          for (let request = 0; request < 3; request += 1) {
            const before = await requestsOf(route);
            await harness.visit(hostOf(route), 200, visitor);
            const after = await requestsOf(route);
            served.get(visitor)?.push(after['2'] === before['2'] ? 1 : 2);
          }
        }
      }
      for (const versions of served.values()) {
        expect(versions).toEqual(versions.toSorted((a, b) => a - b));
        expect(versions.at(-1)).toBe(2);
      }
      expect([...served.values()].some((versions) => versions[0] === 1)).toBe(true);
    });

    it('splits requests exactly by weight where a visitor need not stay', async () => {
      const route = { ...routeOf([await backend(1, 75), await backend(2, 25)]), sessionAffinity: false };
      await router.applyRoute(route);
      expect(await router.readRoute(route.appId)).toEqual(route);
      for (let request = 0; request < 100; request++) await harness.visit(hostOf(route), 200, 5000);
      expect(await requestsOf(route)).toEqual({ 1: 75, 2: 25 });
    });

    it('counts requests in flight on an instance, even after its route was deleted', async () => {
      const only = await backend(1, 100);
      const key = only.instances[0]?.key ?? '';
      const route = routeOf([only]);
      await router.applyRoute(route);
      expect(await router.readInFlight(key)).toBe(0);
      const [first, second] = [await harness.hold(hostOf(route)), await harness.hold(hostOf(route))];
      expect(await router.readInFlight(key)).toBe(2);
      await router.deleteRoute(route.appId);
      await first.end();
      expect(await router.readInFlight(key)).toBe(1);
      await second.end();
      expect(await router.readInFlight(key)).toBe(0);
    });

    it('reports nothing for an unknown app or instance', async () => {
      expect(await router.readRoute(newUuid())).toBeUndefined();
      expect(await router.readTraffic(newUuid())).toEqual([]);
      expect(await router.readInFlight(newUuid())).toBe(0);
    });
  });
}
