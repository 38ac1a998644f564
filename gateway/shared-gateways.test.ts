import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer, get, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { newUuid } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import { listenOnOwnSocket, removeDeadSockets } from '#shared/net/unix-socket.ts';
import type { AppRoute } from '#shared/routing/app-route.ts';
import { describeRouter } from '#shared/routing/contract/router.ts';
import { createSharedGatewaysRouter } from '#shared/routing/gateway-router.ts';
import { type Gateway, startGateway } from './gateway.ts';
import { gatewayFiles } from './gateway-options.ts';

const log = createLog('silent', () => undefined);
const cleanUps: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const cleanUp of cleanUps.toReversed()) await cleanUp();
});

async function newDirectory(): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'paas-gateways-'));
  cleanUps.push(() => rm(dataDir, { recursive: true, force: true, maxRetries: 3 }));
  return dataDir;
}

async function open(dataDir: string, instance: string, httpPort = 0): Promise<Gateway> {
  const options = {
    dataDir,
    instance,
    host: '127.0.0.1',
    httpPort,
    httpsPort: 0,
    apiHosts: ['paas.example.com'],
    appsDomain: 'apps.localhost',
    trustedProxies: [],
    connectionsPerAddress: 1000,
  };
  const gateway = await startGateway(options, { log, version: 'test' });
  cleanUps.push(() => gateway.stop(0));
  return gateway;
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUps.push(async () => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

function visit(gateway: Gateway, host: string, path = '/', bucket = 0): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const headers = { host, cookie: `paas_visitor=${bucket}` };
    get({ host: '127.0.0.1', port: gateway.httpPort, path, headers, agent: false }, (incoming) => {
      let body = '';
      incoming.on('data', (chunk: Buffer) => {
        body += chunk.toString();
      });
      incoming.once('end', () => resolve({ status: incoming.statusCode ?? 0, body })).once('error', reject);
    }).once('error', reject);
  });
}

async function routeTo(...ports: readonly number[]): Promise<AppRoute> {
  const appId: AppRoute['appId'] = newUuid();
  const appName = `app-${appId.slice(0, 8)}`;
  const instances = ports.map((port) => ({ key: newUuid(), host: '127.0.0.1', port }));
  return { appId, appName, hosts: [`${appName}.apps.localhost`], backends: [{ releaseVersion: 1, weight: 100, instances }] };
}

describeRouter('two gateways', async () => {
  const dataDir = await newDirectory();
  const [one, other] = [await open(dataDir, 'one'), await open(dataDir, 'other')];
  const held: ServerResponse[] = [];
  return {
    router: createSharedGatewaysRouter(gatewayFiles(dataDir).directory),
    async startInstance() {
      const server = createServer((request, response) => {
        if (request.url === '/held') held.push(response);
        else response.writeHead(Number(request.url?.slice(1))).end();
      });
      return { host: '127.0.0.1', port: await listen(server) };
    },
    async visit(host, status = 200, bucket) {
      expect((await visit(one, host, `/${status}`, bucket)).status).toBe(status);
    },
    async hold(host) {
      const before = held.length;
      const over = visit(other, host, '/held');
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

describe('gateways of one data directory', () => {
  it('count together, and what one counted before it ended stays in the sum', async () => {
    const dataDir = await newDirectory();
    const [one, other] = [await open(dataDir, 'one'), await open(dataDir, 'other')];
    const router = createSharedGatewaysRouter(gatewayFiles(dataDir).directory);
    const route = await routeTo(await listen(createServer((_, response) => void response.end('hello'))));
    await router.applyRoute(route);
    const host = route.hosts[0] ?? '';
    for (const gateway of [one, one, other]) expect((await visit(gateway, host)).status).toBe(200);
    const requests = async (): Promise<number | undefined> => (await router.readTraffic(route.appId))[0]?.requests;
    expect(await requests()).toBe(3);
    await one.stop(0);
    expect(await requests()).toBe(3);
    await visit(other, host);
    expect(await requests()).toBe(4);
  });

  it('share their ports', async () => {
    const dataDir = await newDirectory();
    const one = await open(dataDir, 'one');
    const other = await open(dataDir, 'other', one.httpPort);
    expect(other.httpPort).toBe(one.httpPort);
  });

  it('know all routes when they come later, and apps are routed on when all but one have ended', async () => {
    const dataDir = await newDirectory();
    const one = await open(dataDir, 'one');
    const router = createSharedGatewaysRouter(gatewayFiles(dataDir).directory);
    const route = await routeTo(await listen(createServer((_, response) => void response.end('hello'))));
    await router.applyRoute(route);
    const later = await open(dataDir, 'later');
    await one.stop(0);
    expect((await visit(later, route.hosts[0] ?? '')).body).toBe('hello');
    await router.applyRoute({ ...route, hosts: ['other.apps.localhost'] });
    expect((await visit(later, 'other.apps.localhost')).body).toBe('hello');
  });

  it('forget a gateway that was killed, whose socket is still there', async () => {
    const dataDir = await newDirectory();
    await open(dataDir, 'one');
    const { directory } = gatewayFiles(dataDir);
    await leaveDeadSocket(join(directory, 'control-dead.sock'));
    await createSharedGatewaysRouter(directory).applyRoute(await routeTo());
    expect((await readdir(directory)).filter((name) => name.startsWith('control-'))).toEqual(['control-one.sock']);
  });

  it('forward requests of the API to its processes in turn, and to those left when one is killed', async () => {
    const dataDir = await newDirectory();
    const { directory } = gatewayFiles(dataDir);
    const gateway = await open(dataDir, 'one');
    await leaveDeadSocket(join(directory, 'api-dead.sock'));
    for (const name of ['a', 'b']) {
      const server = createServer((_, response) => void response.end(name));
      await listenOnOwnSocket(server, join(directory, `api-${name}.sock`));
      cleanUps.push(async () => server.close());
    }
    const ask = async (): Promise<string> => (await visit(gateway, 'paas.example.com')).body;
    await expect.poll(ask).toBe('b');
    const answers = await Promise.all(Array.from({ length: 30 }, ask));
    expect(new Set(answers)).toEqual(new Set(['a', 'b']));

    await removeDeadSockets(directory, /^api-/);
    expect((await readdir(directory)).filter((name) => name.startsWith('api-')).toSorted()).toEqual(['api-a.sock', 'api-b.sock']);
  });
});

/** The socket of a process that was killed. */
async function leaveDeadSocket(path: string): Promise<void> {
  const script = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
  const child = spawn(process.execPath, ['-e', script], { stdio: 'ignore' });
  await once(child, 'exit');
}
