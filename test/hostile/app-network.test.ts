import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { request as post } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser, type User, visit } from '#test/support/platform/user.ts';

/** Tries connections, 50 at a time, and returns those that were accepted, as `address:port`. */
const probe = `const { connect } = require('node:net');
const attempt = (host, port) => new Promise((resolve) => {
  const socket = connect({ host, port, timeout: 700 });
  const end = (open) => { socket.destroy(); resolve(open ? [host + ':' + port] : []); };
  socket.on('connect', () => end(true)).on('error', () => end(false)).on('timeout', () => end(false));
});
module.exports = async (targets) => {
  const open = [];
  for (let at = 0; at < targets.length; at += 50)
    open.push(...(await Promise.all(targets.slice(at, at + 50).map(([host, port]) => attempt(host, port)))).flat());
  return open;
};
`;

const server = `const { createServer } = require('node:http');
const { readFileSync } = require('node:fs');
const probe = require('./probe.js');
createServer(async (request, response) => {
  if (request.url === '/sockets') return response.end(readFileSync('/proc/net/tcp', 'utf8') + readFileSync('/proc/net/tcp6', 'utf8'));
  if (request.url.startsWith('/take/')) {
    const thief = createServer((_, stolen) => stolen.end('stolen')).listen(Number(request.url.slice(6)), '0.0.0.0');
    return thief.on('listening', () => response.end('taken')).on('error', (error) => response.end(error.code));
  }
  let body = '';
  for await (const chunk of request) body += chunk;
  response.end(JSON.stringify(request.method === 'POST' ? await probe(JSON.parse(body)) : 'here'));
}).listen(process.env.PORT, '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
`;

const files = {
  'package.json': JSON.stringify({ name: 'prober', version: '1.0.0', private: true, scripts: { start: 'node server.js' } }),
  'probe.js': probe,
  'server.js': server,
};

type Target = readonly [host: string, port: number];

/** Ports that anything listens on in a network namespace: proc(5), state 0A. */
async function readListeningPorts(pid: number | 'self'): Promise<number[]> {
  const tables = await Promise.all(['tcp', 'tcp6'].map((table) => readFile(`/proc/${pid}/net/${table}`, 'utf8')));
  const rows = tables.flatMap((table) => table.split('\n').slice(1)).map((line) => line.trim().split(/\s+/));
  const ports = rows
    .filter((fields) => fields[3] === '0A')
    .map((fields) => Number.parseInt((fields[1] ?? '').split(':')[1] ?? '', 16));
  return [...new Set(ports)];
}

/** Until all add-ons answer and the newest release, which has their addresses, serves. */
async function untilServed(user: User, app: string): Promise<void> {
  const look = async () => {
    const addons = await user.api<{ status: string }[]>('GET', `/v1/apps/${app}/addons`);
    const [newest] = await user.api<{ current: boolean }[]>('GET', `/v1/apps/${app}/releases`);
    return { addons: addons.map(({ status }) => status), current: newest?.current };
  };
  await vi.waitFor(async () => expect(await look()).toEqual({ addons: ['Ready', 'Ready'], current: true }), {
    timeout: 60_000,
    interval: 200,
  });
}

describe.skipIf(process.getuid?.() !== 0)('code of an app', () => {
  let platform: RunningPlatform;
  let victim: User;
  let attacker: User;
  /** Every port that listens on the host, with each address by which the host could be reached. */
  let hostTargets: Target[];
  let victimAddress: string;
  let victimPort: number;

  beforeAll(async () => {
    platform = await startPlatform({ env: { PAAS_CANARY_STEP_SECONDS: '0' } });
    victim = await createUser(platform, 'victim@example.com');
    attacker = await createUser(platform, 'attacker@example.com');
    for (const [user, name] of [
      [victim, 'victim'],
      [attacker, 'attacker'],
    ] as const) {
      const app = await user.createApp(name);
      await user.api('POST', '/v1/addons/database', { app_id: name });
      await user.api('POST', `/v1/apps/${name}/addons`, { type: 'kvstore', plan: 'free' });
      const pushed = await (await user.createWorkingCopy(app.push_url, files)).push();
      expect(pushed.code).toBe(0);
      await untilServed(user, name);
    }
    const gateway = JSON.parse(await readFile(join(platform.dataDir, 'gateway/routes.json'), 'utf8')) as unknown;
    const routes = JSON.stringify(gateway);
    const instance = /"appName":"victim".*?"host":"([0-9.]+)","port":(\d+)/.exec(routes);
    victimAddress = instance?.[1] ?? '';
    victimPort = Number(instance?.[2]);
    const ports = await readListeningPorts('self');
    const hostAddress = victimAddress.replace(/\d+$/, (last) => String(Number(last) - 1));
    hostTargets = ['127.0.0.1', hostAddress, '10.213.0.1', '::1'].flatMap((host) => ports.map((port): Target => [host, port]));
  });

  afterAll(async () => {
    await Promise.all([victim?.remove(), attacker?.remove()]);
    await removePlatform(platform);
  });

  const probeFrom = async (app: string, targets: readonly Target[]): Promise<string[]> => {
    const request = post({
      host: '127.0.0.1',
      port: platform.httpPort,
      method: 'POST',
      headers: { host: `${app}.apps.localhost` },
    });
    request.end(JSON.stringify(targets));
    const [response] = (await once(request, 'response')) as [AsyncIterable<Buffer>];
    return JSON.parse(Buffer.concat(await Array.fromAsync(response)).toString()) as string[];
  };
  const addonPort = async (user: User, app: string, type: string): Promise<number> =>
    (await user.api<{ port: number }>('GET', `/v1/apps/${app}/addons/${type}/credentials`)).port;

  it('is served although it listens on its loopback only', async () => {
    expect((await visit(platform, 'attacker')).body).toBe('"here"');
  });

  it('reaches no port of the host but its own add-ons', async () => {
    expect(hostTargets.length).toBeGreaterThan(20);
    const own = await Promise.all(['database', 'kvstore'].map((type) => addonPort(attacker, 'attacker', type)));
    const open = (await probeFrom('attacker', [...hostTargets, ...own.map((port): Target => ['127.0.0.1', port])])).map(
      (target) => Number(target.split(':').at(-1)),
    );
    expect(new Set(open)).toEqual(new Set(own));
  });

  it("reaches neither another tenant's app nor its key-value store", async () => {
    expect((await visit(platform, 'victim')).body).toBe('"here"');
    const store = await addonPort(victim, 'victim', 'kvstore');
    const targets: Target[] = [
      [victimAddress, victimPort],
      [victimAddress, store],
      ['127.0.0.1', store],
    ];
    expect(await probeFrom('attacker', targets)).toEqual([]);
  });

  it('reaches no metadata service, private network or multicast address', async () => {
    const targets: Target[] = [
      '169.254.169.254',
      '10.0.0.1',
      '192.168.0.1',
      '172.16.0.1',
      '100.64.0.1',
      '224.0.0.1',
      'fd00::1',
    ].map((host) => [host, 80]);
    expect(await probeFrom('attacker', targets)).toEqual([]);
  });

  it("sees no sockets but its own network's", async () => {
    const { body } = await visit(platform, 'attacker', '/sockets');
    const shown = [...body.matchAll(/^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) /gm)].map((match) => Number.parseInt(match[1] ?? '', 16));
    const foreign = [platform.httpPort, platform.httpsPort, platform.sshPort, platform.metricsPort, victimPort];
    expect(foreign.filter((port) => shown.includes(port))).toEqual([]);
  });

  it('of a build reaches no port of the host either', async () => {
    const app = await attacker.createApp('builder');
    const copy = await attacker.createWorkingCopy(app.push_url, {
      ...files,
      'package.json': JSON.stringify({
        name: 'builder',
        version: '1.0.0',
        private: true,
        scripts: {
          start: 'node server.js',
          build: `node -e "require('./probe.js')(${JSON.stringify(hostTargets).replaceAll('"', "'")}).then((open) => console.log('reached ' + open.length + ' ' + open))"`,
        },
      }),
    });
    const pushed = await copy.push();
    expect(pushed.stderr).toContain('reached 0');
  });

  it("gets no visitors of another tenant's app by taking its port", async () => {
    expect((await visit(platform, 'attacker', `/take/${victimPort}`)).body).toBe('taken');
    for (let visits = 0; visits < 10; visits++) expect((await visit(platform, 'victim')).body).toBe('"here"');
    expect((await victim.ask('POST', '/v1/apps/victim/restart')).status).toBe(202);
    for (let visits = 0; visits < 10; visits++) expect((await visit(platform, 'victim')).body).toBe('"here"');
  });

  it('leaves no network behind when the platform stops', async () => {
    expect(await readdir('/run/netns')).not.toEqual([]);
    const claims = async () => {
      const names = await readdir('/run/paas-networks');
      const texts = await Promise.all(names.map((name) => readFile(join('/run/paas-networks', name), 'utf8').catch(() => '')));
      return texts.filter((text) => text.includes(platform.dataDir));
    };
    expect((await claims()).length).toBeGreaterThan(0);
    await platform.stop();
    expect(await claims()).toEqual([]);
  });
});
