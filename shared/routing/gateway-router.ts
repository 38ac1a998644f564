import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '#shared/errors.ts';
import type { ReleaseTraffic } from '#shared/platform/traffic.ts';
import type { AppRoute } from '#shared/routing/app-route.ts';
import { callGateway, type GatewayCall } from '#shared/routing/call-gateway.ts';
import type { Router } from '#shared/routing/router.ts';

/** How long a call is retried while the gateway is replaced or started again. */
const retryMilliseconds = 15_000;

/** Driver of the router port: calls the gateway process through its control socket. */
export function createGatewayRouter(controlSocket: string): Router {
  const agent = new Agent({ keepAlive: true, maxSockets: 8, timeout: 4000 });
  const call = <Body>(method: GatewayCall['method'], path: string, body?: unknown): Promise<Body> =>
    retry(async () => (await callGateway(controlSocket, { method, path, body, agent })) as Body);
  return {
    async applyRoute(route) {
      await call('PUT', `/routes/${encodeURIComponent(route.appId)}`, route);
    },
    async deleteRoute(appId) {
      const { existed } = await call<{ existed: boolean }>('DELETE', `/routes/${encodeURIComponent(appId)}`);
      return existed;
    },
    async readRoute(appId) {
      const { route } = await call<{ route: AppRoute | null }>('GET', `/routes/${encodeURIComponent(appId)}`);
      return route ?? undefined;
    },
    listRoutes: () => call<readonly AppRoute[]>('GET', '/routes'),
    readTraffic: (appId) => call<readonly ReleaseTraffic[]>('GET', `/traffic/${encodeURIComponent(appId)}`),
    readPastTraffic: (appId) => call<readonly ReleaseTraffic[]>('GET', `/past-traffic/${encodeURIComponent(appId)}`),
    async readCertificate(host) {
      const { expiresAt } = await call<{ expiresAt: string | null }>('GET', `/certificates/${encodeURIComponent(host)}`);
      return expiresAt === null ? undefined : { expiresAt: new Date(expiresAt) };
    },
    async deleteCertificate(host) {
      const { existed } = await call<{ existed: boolean }>('DELETE', `/certificates/${encodeURIComponent(host)}`);
      return existed;
    },
    async readInFlight(instanceKey) {
      const { count } = await call<{ count: number }>('GET', `/in-flight/${encodeURIComponent(instanceKey)}`);
      return count;
    },
  };
}

/** Repeats a call until the gateway answers. Every call is idempotent, so it does not matter whether an earlier one arrived. */
async function retry<Body>(attempt: () => Promise<Body>): Promise<Body> {
  const deadline = performance.now() + retryMilliseconds;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (error instanceof AppError) throw error;
      if (performance.now() > deadline) {
        throw new AppError('internal', 'The gateway does not answer on its control socket.', { cause: error });
      }
      await sleep(50);
    }
  }
}
