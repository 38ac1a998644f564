import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { getRequestListener } from '@hono/node-server';
import { systemClock } from '#shared/clock.ts';
import type { Context } from '#shared/core/context.ts';
import { offerGitStorage } from '#shared/git/remote-git-storage.ts';
import type { PasswordHasher } from '#shared/identity/password-identity.ts';
import { offerPlatform } from '#shared/platform/remote/remote-platform.ts';
import { createCallTokens } from '#shared/remote/call-tokens.ts';
import { createRemoteServer } from '#shared/remote/remote-server.ts';
import { offerOutside } from '#shared/sources/remote-sources.ts';
import { ampleQuotasSetting } from '#test/support/core/ample-quotas.ts';
import { freePort } from '#test/support/servers/free-port.ts';

const root = new URL('../../../', import.meta.url).pathname;

/** Runtimes other than the process of the test, in which the API at the edge runs. */
export const apiRuntimes = ['node', 'bun', 'deno', 'workerd'] as const;
/** One of `apiRuntimes`. */
export type ApiRuntime = (typeof apiRuntimes)[number];

const chosen = process.env['TEST_API_RUNTIME'];

/** Where the API of the tests runs, by TEST_API_RUNTIME; undefined: in the process of the test, with a clock that it moves. */
export const apiRuntime: ApiRuntime | undefined = apiRuntimes.find((name) => name === chosen);

const denoVersion = '2.9.6';
const workerdVersion = '1.20261117.1';

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
  const directory = await mkdtemp(join(tmpdir(), 'paas-runtime-'));
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
    PAAS_HTTP_PORT: String(httpPort),
    PAAS_BASE_URL: 'http://localhost:8080',
    PAAS_WEBHOOK_SECRET: webhookSecret,
    PAAS_SIGNUPS_PER_ADDRESS: '20',
    PAAS_QUOTAS: ampleQuotasSetting,
    PAAS_TRUSTED_PROXIES: '127.0.0.1',
  };
  const [command, ...args] = await commandOf(runtime, directory, settings);
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('PAAS_')));
  const child = spawn(command, args, {
    cwd: root,
    // A group of its own: npx starts the runtime as its child.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...inherited, ...settings, DENO_NO_UPDATE_CHECK: '1' },
  });
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
    await rm(directory, { recursive: true, force: true });
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
      // As Cloudflare's network does.
      headers.set('cf-connecting-ip', address);
      headers.set('cf-blob', '{}');
      return fetch(`${base}${path}`, { ...init, headers, redirect: 'manual' });
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

async function commandOf(
  runtime: ApiRuntime,
  directory: string,
  settings: Readonly<Record<string, string>>,
): Promise<[string, ...string[]]> {
  const npx = (name: string): [string, ...string[]] => [
    process.execPath,
    join(root, 'node_modules/npm/bin/npx-cli.js'),
    '--yes',
    '--package',
    name,
    '--',
  ];
  const main = 'deploy/edge/serve.ts';
  switch (runtime) {
    case 'node':
      return [process.execPath, main];
    case 'bun':
      return [join(root, 'node_modules/.bin/bun'), main];
    case 'deno':
      return [
        ...npx(`deno@${denoVersion}`),
        'deno',
        'run',
        '--allow-net',
        '--allow-env',
        '--allow-read',
        '--allow-sys',
        '--node-modules-dir=manual',
        main,
      ];
    case 'workerd': {
      const config = join(directory, 'worker.capnp');
      await copyFile(join(root, 'deploy/edge/build/worker.js'), join(directory, 'worker.js'));
      await writeFile(config, workerdConfig(settings));
      return [...npx(`workerd@${workerdVersion}`), 'workerd', 'serve', config, '--experimental'];
    }
  }
}

/** The bundle is beside the file of the configuration. */
function workerdConfig({ PAAS_HTTP_PORT: port = '', ...settings }: Readonly<Record<string, string>>): string {
  const text = (value: string): string => JSON.stringify(value);
  const bindings = Object.entries(settings).map(([name, value]) => `(name = ${text(name)}, text = ${text(value)})`);
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "api", worker = (
      modules = [(name = "worker", esModule = embed "worker.js")],
      compatibilityDate = "2026-06-01",
      compatibilityFlags = ["nodejs_compat"],
      bindings = [${bindings.join(', ')}],
      globalOutbound = "network",
    )),
    (name = "network", network = (allow = ["public", "private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (cfBlobHeader = "cf-blob"), service = "api")],
);
`;
}
