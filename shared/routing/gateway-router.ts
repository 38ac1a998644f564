import { Agent, request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError, type ErrorCode, errorCodes } from '#shared/errors.ts';
import { reachableSocketPath } from '#shared/net/unix-socket.ts';
import type { AppRoute, ReleaseTraffic, Router } from '#shared/routing/routing.ts';

/** How long a call waits for a gateway that is being replaced or started again. */
const patienceMilliseconds = 15_000;

/** A router that speaks to the gateway process over its control socket. */
export function createGatewayRouter(socketPath: string): Router {
  const agent = new Agent({ keepAlive: true, maxSockets: 8, timeout: 4000 });
  const call = <Body>(method: string, path: string, body?: unknown): Promise<Body> =>
    callPatiently(async () => (await callGateway(socketPath, agent, method, path, body)) as Body);
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
    async readInFlight(instanceKey) {
      const { count } = await call<{ count: number }>('GET', `/in-flight/${encodeURIComponent(instanceKey)}`);
      return count;
    },
  };
}

/** Every call is idempotent: whatever became of the one before, it may be made again. */
async function callPatiently<Body>(attempt: () => Promise<Body>): Promise<Body> {
  const deadline = performance.now() + patienceMilliseconds;
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

/**
 * One call of the gateway's control socket.
 * @returns the answer's JSON
 * @throws AppError that the gateway answered with, or a system error when there is no gateway
 */
export async function callGateway(
  socketPath: string,
  agent: Agent | undefined,
  method: string,
  path: string,
  body?: unknown,
): Promise<unknown> {
  const { status, text } = await new Promise<{ status: number; text: string }>((resolve, reject) => {
    const payload = body === undefined ? undefined : JSON.stringify(body);
    const outgoing = httpRequest({
      socketPath: reachableSocketPath(socketPath),
      method,
      path,
      agent: agent ?? false,
      timeout: 60_000,
      headers: payload === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(payload) },
    });
    outgoing.once('response', (incoming) => {
      let text = '';
      incoming.setEncoding('utf8');
      incoming.on('data', (chunk: string) => {
        text += chunk;
      });
      incoming.once('end', () => resolve({ status: incoming.statusCode ?? 500, text }));
      incoming.once('error', reject);
    });
    outgoing.once('timeout', () => outgoing.destroy(new Error('The gateway took longer than 60 s.')));
    outgoing.once('error', reject);
    outgoing.end(payload);
  });
  const answer: unknown = JSON.parse(text);
  if (status < 400) return answer;
  const { code, message } = (answer as { error: { code: ErrorCode; message: string } }).error;
  throw new AppError(errorCodes.includes(code) ? code : 'internal', message);
}
