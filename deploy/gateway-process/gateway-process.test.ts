import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, get, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { ensureGateway, type GatewayProcess, gatewayOptions } from '#deploy/gateway-process/gateway-process.ts';
import type { GatewayIdentity } from '#gateway/control/control-server.ts';
import { type GatewayOptions, gatewayFiles } from '#gateway/gateway-options.ts';
import { newUuid } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import type { AppRoute } from '#shared/routing/app-route.ts';
import { callGateway } from '#shared/routing/call-gateway.ts';
import { describeRouter } from '#shared/routing/contract/router.ts';
import { defaultQuotas } from '#shared/settings/quotas.ts';
import { SettingsError } from '#shared/settings/settings.ts';
import { runChecked } from '#test/support/run-program.ts';

const log = createLog('silent', () => undefined);
const cleanUps: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const cleanUp of cleanUps.toReversed()) await cleanUp();
});

async function freePort(): Promise<number> {
  const server = createTcpServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function newOptions(): Promise<GatewayOptions> {
  const dataDir = await mkdtemp(join(tmpdir(), 'paas-gateway-process-'));
  cleanUps.push(() => rm(dataDir, { recursive: true }));
  return {
    dataDir,
    host: '127.0.0.1',
    httpPort: await freePort(),
    httpsPort: await freePort(),
    apiHosts: ['localhost'],
    appsDomain: 'apps.localhost',
    trustedProxies: [],
    connectionsPerAddress: 1000,
  };
}

async function ensure(options: GatewayOptions): Promise<GatewayProcess> {
  const gateway = await ensureGateway(options, log);
  cleanUps.push(() => gateway.stop());
  return gateway;
}

async function readPid({ dataDir }: GatewayOptions): Promise<number> {
  const identity = (await callGateway(gatewayFiles(dataDir).controlSocket, {
    method: 'GET',
    path: '/identity',
  })) as GatewayIdentity;
  return identity.pid;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function startServer(listener: RequestListener): Promise<Server> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUps.push(async () => {
    server.closeAllConnections();
    server.close();
  });
  return server;
}

function visit({ httpPort }: GatewayOptions, host: string, path = '/', bucket = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    get(
      { host: '127.0.0.1', port: httpPort, path, headers: { host, cookie: `paas_visitor=${bucket}` }, agent: false },
      (incoming) => {
        incoming.resume();
        incoming.once('end', () => resolve(incoming.statusCode ?? 0)).once('error', reject);
      },
    ).once('error', reject);
  });
}

async function routeToHello(): Promise<AppRoute> {
  const server = await startServer((_, response) => void response.end('hello'));
  const { port } = server.address() as AddressInfo;
  const instances = [{ key: newUuid(), host: '127.0.0.1', port }];
  return {
    appId: newUuid(),
    appName: 'hello',
    hosts: ['hello.apps.localhost'],
    backends: [{ releaseVersion: 1, weight: 100, instances }],
  };
}

/** Lets the process open no more files, until the returned function is called. */
async function exhaustFiles(pid: number): Promise<() => Promise<unknown>> {
  const taken = new Set((await readdir(`/proc/${pid}/fd`)).map(Number));
  let free = 0;
  while (taken.has(free)) free += 1;
  await runChecked('prlimit', ['--pid', String(pid), `--nofile=${free}:`]);
  return () => runChecked('prlimit', ['--pid', String(pid), '--nofile=1000:']);
}

describeRouter('gateway process', async () => {
  const options = await newOptions();
  const gateway = await ensure(options);
  const held: ServerResponse[] = [];
  return {
    router: gateway.router,
    async startInstance() {
      const server = await startServer((request, response) => {
        if (request.url === '/held') held.push(response);
        else response.writeHead(Number(request.url?.slice(1))).end();
      });
      return { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
    },
    async visit(host, status = 200, bucket) {
      expect(await visit(options, host, `/${status}`, bucket)).toBe(status);
    },
    async hold(host) {
      const before = held.length;
      const over = visit(options, host, '/held');
      await expect.poll(() => held.length).toBe(before + 1);
      const response = held[before];
      return {
        async end() {
          response?.end();
          await over;
        },
      };
    },
    stop: async () => undefined,
  };
});

describe('the gateway process', () => {
  it('keeps serving when its starter is killed with -9, and the next start finds the same process', async () => {
    const options = await newOptions();
    const route = await routeToHello();
    const script = join(options.dataDir, 'control-plane.ts');
    const moduleUrl = new URL('./gateway-process.ts', import.meta.url).href;
    await writeFile(
      script,
      `import { ensureGateway } from ${JSON.stringify(moduleUrl)};
const log = { debug() {}, info() {}, warn() {}, error() {} };
const gateway = await ensureGateway(${JSON.stringify(options)}, log);
await gateway.router.applyRoute(${JSON.stringify(route)});
console.log('applied');
setInterval(() => undefined, 1000);`,
    );
    const controlPlane = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(controlPlane.stdout, 'data');
    const pid = await readPid(options);
    controlPlane.kill('SIGKILL');
    await once(controlPlane, 'exit');
    expect(await visit(options, 'hello.apps.localhost')).toBe(200);
    const found = await ensure(options);
    expect(await readPid(options)).toBe(pid);
    expect(await found.router.readRoute(route.appId)).toEqual(route);
  });

  it('is started again with all routes when it is killed, and calls in the meantime succeed', async () => {
    const options = await newOptions();
    const { router } = await ensure(options);
    const route = await routeToHello();
    await router.applyRoute(route);
    const pid = await readPid(options);
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => isRunning(pid)).toBe(false);
    expect(await router.readRoute(route.appId)).toEqual(route);
    expect(await visit(options, 'hello.apps.localhost')).toBe(200);
    expect(await readPid(options)).not.toBe(pid);
  });

  it('is replaced when its options change; routes and counts are kept, and the earlier process ends', async () => {
    const options = await newOptions();
    const first = await ensureGateway(options, log);
    const route = await routeToHello();
    await first.router.applyRoute(route);
    await visit(options, 'hello.apps.localhost');
    const pid = await readPid(options);
    await first.detach();
    const second = await ensure({ ...options, apiHosts: ['localhost', 'paas.example.com'] });
    expect(await visit(options, 'hello.apps.localhost')).toBe(200);
    expect(await second.router.readTraffic(route.appId)).toMatchObject([{ requests: 2, errors: 0 }]);
    await expect.poll(() => isRunning(pid)).toBe(false);
  });

  it('is replaced when it has other code', async () => {
    const options = await newOptions();
    const main = new URL('../gateway.ts', import.meta.url);
    const earlier = spawn(process.execPath, [main.pathname, JSON.stringify(options), 'an earlier version'], {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    await once(earlier, 'message');
    await ensure(options);
    expect(await readPid(options)).not.toBe(earlier.pid);
    expect(earlier.exitCode ?? (await once(earlier, 'exit'))[0]).toBe(0);
  });

  it('ends with a clean stop and frees its ports', async () => {
    const options = await newOptions();
    const gateway = await ensureGateway(options, log);
    const pid = await readPid(options);
    await gateway.stop();
    await expect.poll(() => isRunning(pid)).toBe(false);
    await expect(visit(options, 'localhost')).rejects.toThrow('ECONNREFUSED');
  });

  it('ends with a clean stop that begins while it can open no more files', async () => {
    const options = await newOptions();
    const gateway = await ensure(options);
    const pid = await readPid(options);
    const allowFiles = await exhaustFiles(pid);
    const stopping = gateway.stop();
    // Connections are accepted in turn: that of the stop has failed before.
    await expect(readPid(options)).rejects.toThrow();
    await allowFiles();
    await stopping;
    await expect.poll(() => isRunning(pid)).toBe(false);
  });

  it('ends when its data directory is removed', async () => {
    const options = { ...(await newOptions()), dataDir: await mkdtemp(join(tmpdir(), 'paas-gateway-gone-')) };
    const gateway = await ensureGateway(options, log);
    const pid = await readPid(options);
    await gateway.detach();
    await rm(options.dataDir, { recursive: true });
    await vi.waitFor(() => expect(isRunning(pid)).toBe(false), { timeout: 15_000 });
  });

  it.each(['PAAS_HTTP_PORT', 'PAAS_HTTPS_PORT'])('names the process that uses the port of %s', async (setting) => {
    const squatter = await startServer((_, response) => void response.end());
    const { port } = squatter.address() as AddressInfo;
    const options = { ...(await newOptions()), ...(setting === 'PAAS_HTTP_PORT' ? { httpPort: port } : { httpsPort: port }) };
    const error: unknown = await ensureGateway(options, log).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(SettingsError);
    expect((error as Error).message).toMatch(
      new RegExp(`^Port ${port} is taken \\(by pid ${process.pid} [^)]+\\): set ${setting} to another\\.$`),
    );
  });

  it('starts with a damaged routes.json, and renames the file', async () => {
    const options = await newOptions();
    const gateway = await ensureGateway(options, log);
    await gateway.stop();
    const { routes } = gatewayFiles(options.dataDir);
    await writeFile(routes, '{"routes": [');
    const again = await ensure(options);
    expect(await again.router.listRoutes()).toEqual([]);
    expect(await readFile(`${routes}.damaged`, 'utf8')).toBe('{"routes": [');
  });

  it('gets the base host and the ports of the settings, and no secret', () => {
    const settings = {
      dataDir: '.paas',
      host: '0.0.0.0',
      httpPort: 80,
      httpsPort: 443,
      sshPort: 22,
      sshListenPort: 22,
      metricsPort: 9464,
      internalPort: undefined,
      edgePort: undefined,
      internalUrl: undefined,
      baseUrl: 'https://PaaS.example.com',
      appsDomain: 'apps.example.com',
      toleratedFaults: [],
      gitIndexer: 'native',
      objectStore: undefined,
      databaseUrl: 'postgres://u:secret@h/d',
      databaseAuthentication: 'tls',
      platform: 'local',
      kubernetes: undefined,
      secretKey: 'secret',
      webhookSecret: 'secret',
      allowPrivateSources: false,
      shareRegistryCredentials: false,
      imageRegistries: { mirrors: {}, insecure: [] },
      appNetwork: { range: '10.213.0.0/16', allowed: [] },
      trustedProxies: ['10.0.0.1'],
      allowedOrigins: [],
      connectionsPerAddress: 50,
      signup: 'open',
      signUpsPerAddress: 20,
      canaryStepSeconds: 1,
      releaseCommandSeconds: 600,
      quotas: defaultQuotas,
      imageBytes: undefined,
      keptReleases: 10,
      orphanDays: 30,
      diskReserveBytes: undefined,
      logLevel: 'info',
    } as const;
    const options = gatewayOptions(settings, '/data', ['Box']);
    expect(options).toEqual({
      dataDir: '/data',
      host: '0.0.0.0',
      httpPort: 80,
      httpsPort: 443,
      apiHosts: ['paas.example.com', 'localhost', 'box'],
      appsDomain: 'apps.example.com',
      trustedProxies: ['10.0.0.1'],
      connectionsPerAddress: 50,
    });
  });
});
