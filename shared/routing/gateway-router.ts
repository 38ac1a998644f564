import { readdir, rm } from 'node:fs/promises';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '#shared/errors.ts';
import { ifMissing } from '#shared/files/if-missing.ts';
import type { ReleaseTraffic } from '#shared/platform/traffic.ts';
import type { AppRoute } from '#shared/routing/app-route.ts';
import { callGateway, type GatewayCall } from '#shared/routing/call-gateway.ts';
import { GatewayTraffic } from '#shared/routing/gateway-traffic.ts';
import type { Router } from '#shared/routing/router.ts';

/** How long a call is retried while the gateway is replaced or started again. */
const retryMilliseconds = 15_000;

/** The answers of all gateways to one call, by the gateway's control socket. At least one. */
type CallGateways = (method: GatewayCall['method'], path: string, body?: unknown) => Promise<ReadonlyMap<string, unknown>>;

/** Driver of the router port: calls the gateway process through its control socket. */
export function createGatewayRouter(controlSocket: string): Router {
  const agent = createAgent();
  return routeBy((method, path, body) =>
    retry(async () => new Map([[controlSocket, await callGateway(controlSocket, { method, path, body, agent })]])),
  );
}

/** The control sockets of gateways that share a data directory, beside one another. */
const sharedSocket = /^control-.+\.sock$/;

/**
 * Driver of the router port for any number of gateways of one data directory: each gets every route, and what they count is added up.
 * A gateway may come or end at any time: one that comes reads the routes that the others wrote.
 * @param directory of the gateways' control sockets
 */
export function createSharedGatewaysRouter(directory: string): Router {
  const agent = createAgent();
  return routeBy((method, path, body) =>
    retry(async () => {
      const answers = new Map<string, unknown>();
      // A gateway that opened its socket meanwhile may have read the routes before the others wrote this one.
      for (;;) {
        const left = (await listSharedGateways(directory)).filter((socket) => !answers.has(socket));
        if (left.length === 0) break;
        for (const socket of left) {
          try {
            answers.set(socket, await callGateway(socket, { method, path, body, agent }));
          } catch (error) {
            if (error instanceof AppError) throw error;
            await forgetGateway(socket, error);
          }
        }
      }
      if (answers.size === 0) throw new Error(`No gateway runs in ${directory}.`);
      return answers;
    }),
  );
}

/** The control sockets of gateways that run, or have run, in a directory. */
export async function listSharedGateways(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch(ifMissing([]));
  return names.filter((name) => sharedSocket.test(name)).map((name) => join(directory, name));
}

/** Nobody listens on the socket of a gateway that was killed, and none will: each has a name of its own. */
async function forgetGateway(socket: string, error: unknown): Promise<void> {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ECONNREFUSED') await rm(socket, { force: true });
  // It ended during the call, and its socket is about to go.
  else if (code !== 'ENOENT') await sleep(50);
}

function createAgent(): Agent {
  return new Agent({ keepAlive: true, maxSockets: 8, timeout: 4000 });
}

function routeBy(callAll: CallGateways): Router {
  const traffic = new GatewayTraffic();
  const call = async <Body>(...args: Parameters<CallGateways>): Promise<[Body, ...Body[]]> =>
    [...(await callAll(...args)).values()] as [Body, ...Body[]];
  const readTraffic = async (path: string): Promise<readonly ReleaseTraffic[]> =>
    traffic.add(path, (await callAll('GET', path)) as ReadonlyMap<string, readonly ReleaseTraffic[]>);
  return {
    async applyRoute(route) {
      await call('PUT', `/routes/${encodeURIComponent(route.appId)}`, route);
    },
    async deleteRoute(appId) {
      const answers = await call<{ existed: boolean }>('DELETE', `/routes/${encodeURIComponent(appId)}`);
      return answers.some(({ existed }) => existed);
    },
    async readRoute(appId) {
      const [{ route }] = await call<{ route: AppRoute | null }>('GET', `/routes/${encodeURIComponent(appId)}`);
      return route ?? undefined;
    },
    async listRoutes() {
      const [routes] = await call<readonly AppRoute[]>('GET', '/routes');
      return routes;
    },
    readTraffic: (appId) => readTraffic(`/traffic/${encodeURIComponent(appId)}`),
    readPastTraffic: (appId) => readTraffic(`/past-traffic/${encodeURIComponent(appId)}`),
    async readCertificate(host) {
      const [{ expiresAt }] = await call<{ expiresAt: string | null }>('GET', `/certificates/${encodeURIComponent(host)}`);
      return expiresAt === null ? undefined : { expiresAt: new Date(expiresAt) };
    },
    async deleteCertificate(host) {
      const answers = await call<{ existed: boolean }>('DELETE', `/certificates/${encodeURIComponent(host)}`);
      return answers.some(({ existed }) => existed);
    },
    async readInFlight(instanceKey) {
      const answers = await call<{ count: number }>('GET', `/in-flight/${encodeURIComponent(instanceKey)}`);
      return answers.reduce((sum, { count }) => sum + count, 0);
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
