import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { getRequestListener } from '@hono/node-server';
import { Agent, fetch as fetchOver } from 'undici';
import { systemClock } from '#shared/clock.ts';
import type { Context } from '#shared/core/context.ts';
import { offerGitStorage } from '#shared/git/remote-git-storage.ts';
import type { PasswordHasher } from '#shared/identity/password-identity.ts';
import { offerPlatform } from '#shared/platform/remote/remote-platform.ts';
import { createCallTokens } from '#shared/remote/call-tokens.ts';
import { createRemoteServer } from '#shared/remote/remote-server.ts';
import { offerOutside } from '#shared/sources/remote-sources.ts';
import { type ApiRuntime, apiRuntimes, runtimeCommand } from '#test/support/api/runtime-commands.ts';
import { ampleQuotasSetting } from '#test/support/core/ample-quotas.ts';
import { spawnBound } from '#test/support/run/bound-process.ts';
import { freePort } from '#test/support/servers/free-port.ts';

const root = new URL('../../../', import.meta.url).pathname;

/** One for each request: a runtime may end an idle one at the moment when it is used again, which breaks a POST. */
const connections = new Agent({ pipelining: 0 });

const chosen = process.env['TEST_API_RUNTIME'];

/** Where the API of the tests runs, by TEST_API_RUNTIME; undefined: in the process of the test, with a clock that it moves. */
export const apiRuntime: ApiRuntime | undefined = apiRuntimes.find((name) => name === chosen);

/**
 * Whether the API runs in the process of the test. Some tests need that: they move its clock, look at its log or its metrics, run its
 * jobs, or see whether it reads a body.
 */
export const apiRunsHere = apiRuntime === undefined;

/** What the runtime shares with the test. */
export interface EdgeWorld {
  context: Context;
  hasher: PasswordHasher;
  databaseUrl: string;
  masterKey: Uint8Array<ArrayBuffer>;
  webhookSecret: string;
}

export interface RunningApi {
  /** @param address of the client */
  request(path: string, init: RequestInit, address: string): Promise<Response>;
  close(): Promise<void>;
}

/** Starts the API at the edge in a runtime of its own, on the database and the fakes of a test. */
export async function startApiRuntime(runtime: ApiRuntime, world: EdgeWorld): Promise<RunningApi> {
  const { context, hasher, databaseUrl, masterKey, webhookSecret } = world;
  const tokens = await createCallTokens(masterKey, systemClock);
  const ports = {
    ...offerPlatform(context.platform),
    ...offerGitStorage(context.git),
    ...offerOutside(context),
    passwords: { methods: { calls: ['hash', 'verify'] }, driver: hasher },
  };
  const listener = getRequestListener(createRemoteServer({ ports, tokens, log: context.log }));
  const internal = createServer((request, response) => void listener(request, response));
  const database = createDatabaseProxy(databaseUrl);
  const [internalPort, databasePort] = [await listen(internal), await listen(database)];
  const url = new URL(databaseUrl);
  url.searchParams.delete('host');
  url.host = `127.0.0.1:${databasePort}`;

  const httpPort = await freePort();
  const settings = {
    PAAS_DATABASE_URL: url.href,
    PAAS_DATABASE_AUTH: 'any',
    PAAS_INTERNAL_URL: `http://127.0.0.1:${internalPort}`,
    PAAS_SECRET_KEY: masterKey.toBase64(),
    PAAS_HOST: '127.0.0.1',
    PAAS_EDGE_PORT: String(httpPort),
    PAAS_BASE_URL: 'http://localhost:8080',
    PAAS_WEBHOOK_SECRET: webhookSecret,
    PAAS_SIGNUPS_PER_ADDRESS: '20',
    PAAS_QUOTAS: ampleQuotasSetting,
    PAAS_TRUSTED_PROXIES: '127.0.0.1',
  };
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('PAAS_')));
  const env = { ...inherited, ...settings, DENO_NO_UPDATE_CHECK: '1' };
  const child = spawnBound(runtimeCommand(runtime, httpPort), { cwd: root, env });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  const exited = once(child, 'exit');
  const close = async (): Promise<void> => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
    await exited;
    for (const server of [internal, database]) {
      server.close();
      if ('closeAllConnections' in server) (server as ReturnType<typeof createServer>).closeAllConnections();
    }
  };
  const base = `http://127.0.0.1:${httpPort}`;
  for (let tries = 0; ; tries += 1) {
    const isReady = await fetch(`${base}/v1/healthz`).then(
      (response) => response.ok,
      () => false,
    );
    if (isReady) break;
    if (child.exitCode !== null || tries > 600) {
      await close();
      throw new Error(`The API on ${runtime} did not start:\n${output}`);
    }
    await sleep(100);
  }
  return {
    request(path, init, address) {
      const headers = new Headers(init.headers);
      headers.set('x-forwarded-for', address);
      // The client adds it to a body without a length.
      headers.delete('transfer-encoding');
      const request = { ...init, headers, redirect: 'manual', dispatcher: connections } as Parameters<typeof fetchOver>[1];
      return fetchOver(`${base}${path}`, request) as unknown as Promise<Response>;
    },
    close,
  };
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** The database of tests listens on a unix socket, which workerd cannot open. */
function createDatabaseProxy(databaseUrl: string): Server {
  const url = new URL(databaseUrl);
  const directory = url.searchParams.get('host');
  const port = Number(url.port === '' ? 5432 : url.port);
  return createTcpServer((client) => {
    const server = directory === null ? connect(port, url.hostname) : connect(`${directory}/.s.PGSQL.${port}`);
    client.pipe(server).on('error', () => client.destroy());
    server.pipe(client).on('error', () => server.destroy());
    client.once('close', () => server.destroy());
  });
}
