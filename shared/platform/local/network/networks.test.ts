import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { endServers, probeInside, readFromHost, serveInside, startHost, stopHost } from '#test/support/network/inside.ts';
import { type AppNetwork, type Networks, type NetworksOptions, openNetworks } from './networks.ts';

const run = promisify(execFile);
const range = '10.213.0.0/16';
const children: ChildProcess[] = [];

/** A platform of the test's own, with a data directory that exists while `work` runs. */
async function withPlatform(options: Partial<NetworksOptions>, work: (networks: Networks) => Promise<void>): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'paas-networks-'));
  const networks = await openNetworks({ dataDir, path: process.env['PATH'] ?? '', range, allowedNetworks: [], ...options });
  expect(networks.problem).toBeUndefined();
  try {
    await work(networks);
  } finally {
    await networks.deleteAll();
    await rm(dataDir, { recursive: true, force: true });
  }
}

/** The host as an app sees it. */
async function readGateway(namespace: string): Promise<{ address: string }> {
  const { stdout } = await run('ip', ['-n', namespace, '-json', 'route', 'show', 'default']);
  const [route] = JSON.parse(stdout) as { gateway: string }[];
  return { address: route?.gateway ?? '' };
}

// Network namespaces need root; without it the platform says so (see the last test).
describe.skipIf(process.getuid?.() !== 0)('networks of apps', () => {
  const suffix = process.pid.toString(36);
  const internet = `tsti${suffix}`.slice(0, 15);
  const lan = `tstl${suffix}`.slice(0, 15);
  // Of this process: the test may run beside itself.
  const block = (process.pid % 16) * 16;
  const internetAddress = `198.51.100.${block + 8}`;
  const lanPrefix = `10.99.${process.pid % 256}`;
  const lanAddress = `${lanPrefix}.8`;
  let dataDir: string;
  let networks: Networks;
  let one: AppNetwork;
  let other: AppNetwork;

  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'paas-networks-'));
    networks = await openNetworks({ dataDir, path: process.env['PATH'] ?? '', range, allowedNetworks: [] });
    expect(networks.problem).toBeUndefined();
    [one, other] = await Promise.all([networks.ensureNetwork('one'), networks.ensureNetwork('other')]);
    await startHost(internet, internetAddress, `198.51.100.${block + 1}`);
    await startHost(lan, lanAddress, `${lanPrefix}.1`);
    await Promise.all([serveInside(internet, '0.0.0.0', 80), serveInside(lan, '0.0.0.0', 80)]);
  });

  afterAll(async () => {
    endServers();
    for (const child of children) child.kill('SIGKILL');
    await networks?.deleteAll();
    await Promise.all([stopHost(internet), stopHost(lan)]);
    await rm(dataDir, { recursive: true, force: true });
  });

  it('let the host reach an app that listens on its loopback only, and one that listens on every address', async () => {
    await serveInside(one.namespace, '127.0.0.1', 5001);
    await serveInside(one.namespace, '0.0.0.0', 5002);
    expect(await readFromHost(one.address, 5001)).toBe('hello');
    expect(await readFromHost(one.address, 5002)).toBe('hello');
  });

  it('keep apps apart', async () => {
    await serveInside(one.namespace, '0.0.0.0', 5003);
    expect(await probeInside(other.namespace, one.address, 5003)).toBe('timeout');
    expect(await probeInside(other.namespace, '127.0.0.1', 5003)).toBe('ECONNREFUSED');
  });

  it('reach the internet, but no private host', async () => {
    expect(await probeInside(one.namespace, internetAddress, 80)).toBe('open');
    expect(await probeInside(one.namespace, lanAddress, 80)).toBe('timeout');
    expect(await probeInside(one.namespace, '169.254.169.254', 80)).not.toBe('open');
  });

  it("open no more flows than their share of the host's table of connections, also when networks come and go", async () => {
    const flood = `const socket = require('node:dgram').createSocket('udp4');
let sent = 0;
const next = () => { if (sent === 12000) return socket.close(); socket.send('x', 1024 + (sent++ % 60000), '${internetAddress}', next); };
next();`;
    const inTable = async () => Number(await readFile('/proc/sys/net/netfilter/nf_conntrack_count', 'utf8'));
    const before = await inTable();
    await run('nsenter', [`--net=/run/netns/${one.namespace}`, process.execPath, '-e', flood]);
    await networks.ensureNetwork('third');
    await run('nsenter', [`--net=/run/netns/${one.namespace}`, process.execPath, '-e', flood]);
    await networks.deleteNetwork('third');
    expect((await inTable()) - before).toBeLessThan(8500);
    await serveInside(internet, '0.0.0.0', 81);
    expect(await probeInside(other.namespace, internetAddress, 81)).toBe('open');
  });

  it('reach no port of the host by any of its addresses', async () => {
    const listener = createServer((socket) => socket.end());
    await new Promise<void>((resolve) => listener.listen(0, '::', resolve));
    const { port } = listener.address() as { port: number };
    const { stdout } = await run('ip', ['-json', 'addr']);
    const addresses = (JSON.parse(stdout) as { addr_info: { local: string; scope: string }[] }[])
      .flatMap(({ addr_info }) => addr_info)
      .filter(({ scope }) => scope !== 'link')
      .map(({ local }) => local);
    expect(addresses.length).toBeGreaterThan(2);
    // Twenty at a time: other platforms on the machine have addresses, too.
    for (let at = 0; at < addresses.length; at += 20) {
      const part = addresses.slice(at, at + 20);
      const seen = await Promise.all(part.map(async (address) => [address, await probeInside(one.namespace, address, port)]));
      expect(seen.filter(([, answer]) => answer === 'open')).toEqual([]);
    }
    listener.close();
  });

  it('leave connections to databases for others', async () => {
    let accepted = 0;
    const listener = createServer((socket) => {
      accepted += 1;
      socket.on('error', () => undefined);
    });
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    const { port } = listener.address() as { port: number };
    const [flooder, guest] = await Promise.all([networks.ensureNetwork('flooder'), networks.ensureNetwork('guest')]);
    await Promise.all(['flooder', 'guest'].map((owner) => networks.openPorts(owner, { toHost: [port] })));
    const flood = `const { connect } = require('node:net');
for (let count = 0; count < 300; count += 1) connect({ host: '127.0.0.1', port: ${port} }).on('error', () => undefined);
setTimeout(() => {}, 60000);`;
    const attacker = spawn('nsenter', [`--net=/run/netns/${flooder.namespace}`, process.execPath, '-e', flood]);
    children.push(attacker);
    await expect.poll(() => accepted, { timeout: 10_000 }).toBe(80);
    expect(await probeInside(guest.namespace, '127.0.0.1', port)).toBe('open');
    expect(accepted).toBe(81);
    attacker.kill();
    await Promise.all(['flooder', 'guest'].map((owner) => networks.deleteNetwork(owner)));
    listener.close();
  });

  it('lead to the add-ons of an app on its loopback, and to those of no other', async () => {
    const listener = createServer((socket) => socket.end());
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    const { port } = listener.address() as { port: number };
    await networks.openPorts('one', { toHost: [port] });
    expect(await probeInside(one.namespace, '127.0.0.1', port)).toBe('open');
    expect(await probeInside(other.namespace, '127.0.0.1', port)).toBe('ECONNREFUSED');
    await networks.openPorts('one', { toHost: [] });
    expect(await probeInside(one.namespace, '127.0.0.1', port)).toBe('ECONNREFUSED');
    listener.close();
  });

  it('lead from the host to a server of an app by the loopback of the host, as long as that is wanted', async () => {
    await serveInside(one.namespace, '127.0.0.1', 15_321);
    await networks.openPorts('one', { fromHost: [15_321] });
    expect(await readFromHost('127.0.0.1', 15_321)).toBe('hello');
    expect(await probeInside(other.namespace, '127.0.0.1', 15_321)).toBe('ECONNREFUSED');
    await networks.openPorts('one', { fromHost: [] });
    await expect(readFromHost('127.0.0.1', 15_321)).rejects.toThrow('ECONNREFUSED');
  });

  it('allow networks that the operator allows', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'paas-networks-'));
    const options = { dataDir: directory, path: process.env['PATH'] ?? '', range, allowedNetworks: [`${lanPrefix}.0/28`] };
    const opened = await openNetworks(options);
    const { namespace } = await opened.ensureNetwork('one');
    expect(await probeInside(namespace, lanAddress, 80)).toBe('open');
    await opened.deleteAll();
    await rm(directory, { recursive: true, force: true });
  });

  it('are found again by the next control plane, with what runs inside', async () => {
    await serveInside(one.namespace, '127.0.0.1', 5004);
    const next = await openNetworks({ dataDir, path: process.env['PATH'] ?? '', range, allowedNetworks: [] });
    expect(await next.ensureNetwork('one')).toEqual(one);
    expect(await readFromHost(one.address, 5004)).toBe('hello');
  });

  it('show an app the sockets of its own network only', async () => {
    await serveInside(other.namespace, '0.0.0.0', 5005);
    const { stdout } = await run('nsenter', [`--net=/run/netns/${other.namespace}`, 'cat', '/proc/net/tcp', '/proc/net/tcp6']);
    const ports = [...stdout.matchAll(/^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) /gm)].map((match) => Number.parseInt(match[1] ?? '', 16));
    expect(new Set(ports)).toEqual(new Set([5005]));
  });

  it('let an app ask the resolvers on their port, although they are private, and reach nothing else of them', async () => {
    await withPlatform({ readResolvers: () => Promise.resolve([lanAddress]) }, async (opened) => {
      const { namespace } = await opened.ensureNetwork('one');
      expect(await probeInside(namespace, lanAddress, 53)).toBe('ECONNREFUSED');
      expect(await probeInside(namespace, lanAddress, 80)).toBe('timeout');
    });
  });

  it('follow a change of the resolvers when code is started', async () => {
    let resolvers: string[] = [];
    await withPlatform({ readResolvers: () => Promise.resolve(resolvers) }, async (opened) => {
      const { namespace } = await opened.ensureNetwork('one');
      expect(await probeInside(namespace, lanAddress, 53)).toBe('timeout');
      resolvers = [lanAddress];
      await opened.ensureNetwork('one');
      expect(await probeInside(namespace, lanAddress, 53)).toBe('ECONNREFUSED');
    });
  });

  it('reach nothing by IPv6 but their own loopback: neither the host, nor neighbours, nor private networks', async () => {
    const { stdout } = await run('ip', ['-6', '-json', 'addr']);
    const ofHost = (JSON.parse(stdout) as { ifname: string; addr_info: { local: string }[] }[]).flatMap(({ addr_info }) =>
      addr_info.map(({ local }) => local),
    );
    const listener = createServer((socket) => socket.end());
    await new Promise<void>((resolve) => listener.listen(0, '::', resolve));
    const { port } = listener.address() as { port: number };
    const closed = [
      'fe80::1%eth0',
      'ff02::1%eth0',
      'fd00::1',
      'fc00::1',
      'fec0::1',
      `::ffff:${lanAddress}`,
      '64:ff9b::a63:750',
      '2002:a63:750::1',
    ];
    for (const address of [...ofHost, ...closed, '2606:4700:4700::1111'])
      expect([address, await probeInside(one.namespace, address, port)]).not.toEqual([address, 'open']);
    await serveInside(one.namespace, '::1', 5006);
    expect(await probeInside(one.namespace, '::1', 5006)).toBe('open');
    listener.close();
  });

  it('do not lead to abstract unix sockets of the host', async () => {
    const name = `paas-test-${process.pid}`;
    const listener = createServer((socket) => socket.end());
    await new Promise<void>((resolve) => listener.listen(`\0${name}`, resolve));
    const script = `const socket = require('node:net').connect({ path: '\\0${name}' });
socket.on('connect', () => { console.log('open'); process.exit(); });
socket.on('error', (error) => { console.log(error.code); process.exit(); });`;
    const inside = await run('nsenter', [`--net=/run/netns/${one.namespace}`, process.execPath, '-e', script]);
    const outside = await run(process.execPath, ['-e', script]);
    expect([inside.stdout.trim(), outside.stdout.trim()]).toEqual(['ECONNREFUSED', 'open']);
    listener.close();
  });

  it('lose the ports of an app with the app: the next one with its addresses does not get them', async () => {
    const listener = createServer((socket) => socket.end());
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    const { port } = listener.address() as { port: number };
    await withPlatform({}, async (opened) => {
      const first = await opened.ensureNetwork('first');
      await opened.openPorts('first', { toHost: [port] });
      const { address: host } = await readGateway(first.namespace);
      expect(await probeInside(first.namespace, host, port)).toBe('open');
      await opened.deleteNetwork('first');
      let next = await opened.ensureNetwork('next');
      for (let count = 0; next.address !== first.address && count < 50; count++)
        next = await opened.ensureNetwork(`next ${count}`);
      expect(next.address).toBe(first.address);
      expect(await probeInside(next.namespace, host, port)).toBe('timeout');
    });
    listener.close();
  });

  it('keep all ports of an app that gets two add-ons at the same time', async () => {
    await withPlatform({}, async (opened) => {
      await serveInside((await opened.ensureNetwork('one')).namespace, '127.0.0.1', 15_322);
      const listener = createServer((socket) => socket.end());
      await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
      const { port } = listener.address() as { port: number };
      await Promise.all([opened.openPorts('one', { toHost: [port] }), opened.openPorts('one', { fromHost: [15_322] })]);
      const { namespace } = await opened.ensureNetwork('one');
      expect(await probeInside(namespace, '127.0.0.1', port)).toBe('open');
      expect(await readFromHost('127.0.0.1', 15_322)).toBe('hello');
      listener.close();
    });
  });

  it('cut off the processes of an app when its network is deleted, also from the next app with its addresses', async () => {
    await withPlatform({}, async (opened) => {
      const { namespace, address } = await opened.ensureNetwork('first');
      const script = `const net = require('node:net');
net.createServer((socket) => socket.end('old')).listen(5007, '0.0.0.0', () => console.log('up'));
process.stdin.on('data', () => {
  const socket = net.connect({ host: '${internetAddress}', port: 80, timeout: 1000 });
  socket.on('connect', () => { console.log('open'); socket.destroy(); });
  socket.on('error', (error) => console.log(error.code));
  socket.on('timeout', () => { console.log('timeout'); socket.destroy(); });
});`;
      const child = spawn('nsenter', [`--net=/run/netns/${namespace}`, process.execPath, '-e', script]);
      children.push(child);
      const ask = (text: string): Promise<string> =>
        new Promise((resolve) => {
          child.stdout.once('data', (data) => resolve(String(data).trim()));
          child.stdin.write(text);
        });
      expect(await ask('')).toBe('up');
      await expect.poll(() => ask('\n')).toBe('open');
      await opened.deleteNetwork('first');
      expect(await ask('\n')).not.toBe('open');
      await opened.ensureNetwork('next');
      expect(await ask('\n')).not.toBe('open');
      await expect(readFromHost(address, 5007)).rejects.toThrow();
    });
  });

  it('of a platform that was killed before its first app, and whose directory is gone, are swept by the next platform', async () => {
    const gone = await mkdtemp(join(tmpdir(), 'paas-networks-'));
    await openNetworks({ dataDir: gone, path: process.env['PATH'] ?? '', range, allowedNetworks: [] });
    const table = `paas_${createHash('sha256').update(gone).digest('hex').slice(0, 8)}`;
    const listTables = async (): Promise<string> => (await run('nft', ['list', 'tables'])).stdout;
    expect(await listTables()).toContain(table);
    await rm(gone, { recursive: true });
    await withPlatform({}, async () => expect(await listTables()).not.toContain(table));
  });

  it('leave out addresses that the host uses', async () => {
    await run('ip', ['addr', 'add', '10.98.0.1/20', 'dev', lan]);
    await withPlatform({ range: '10.98.0.0/16' }, async (opened) => {
      const { address } = await opened.ensureNetwork('one');
      // Numbers are shared with other platforms of the machine: which one is free is not known.
      expect(address).toMatch(/^10\.98\.(1[6-9]|[2-9]\d|1\d\d)\./);
    });
    await withPlatform({ range: `${lanPrefix}.0/28` }, async (opened) => {
      await expect(opened.ensureNetwork('one')).rejects.toThrow('PAAS_APP_NETWORK');
    });
  });

  it('are gone when they are deleted', async () => {
    await networks.ensureNetwork('third');
    expect(await networks.deleteNetwork('third')).toBe(true);
    expect(await networks.deleteNetwork('third')).toBe(false);
    const { stdout } = await run('ip', ['-json', 'netns', 'list']);
    expect(stdout).toContain(one.namespace);
    const names = (JSON.parse(stdout) as { name: string }[]).map(({ name }) => name);
    expect(names.filter((name) => name.startsWith(one.namespace.slice(0, 10))).length).toBe(2);
  });
});

it('say what is missing where there are no commands for them', async () => {
  const opened = await openNetworks({ dataDir: '/nonexistent', path: '/nonexistent', range, allowedNetworks: [] });
  expect(opened.problem).toMatch(/root|apt-get install/);
});
