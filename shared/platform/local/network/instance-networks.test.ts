import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { endServers, probeInside, readFromHost, serveInside, startHost, stopHost } from '#test/support/network/inside.ts';
import type { InstanceNetwork } from './instance-networks.ts';
import { type AppNetwork, type Networks, openNetworks } from './networks.ts';

const run = promisify(execFile);

// Network namespaces need root.
describe.skipIf(process.getuid?.() !== 0)('networks of instances', () => {
  let dataDir: string;
  let networks: Networks;
  let app: AppNetwork;

  const open = (): Promise<Networks> =>
    openNetworks({ dataDir, path: process.env['PATH'] ?? '', range: '10.213.0.0/16', allowedNetworks: [] });
  async function take(owner = 'one'): Promise<InstanceNetwork> {
    const network = await networks.instances.take(owner);
    if (network === undefined) throw new Error('there is no network');
    return network;
  }
  const listNamespaces = async (): Promise<string[]> =>
    (await readdir('/run/netns')).filter((name) => name.startsWith(`${app.namespace}-`)).toSorted();

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'paas-networks-'));
    networks = await open();
    expect(networks.problem).toBeUndefined();
    app = await networks.ensureNetwork('one');
  });
  afterEach(async () => {
    endServers();
    await networks.deleteAll();
    await rm(dataDir, { recursive: true, force: true });
  });

  it('are reached by their ports at the address of the app, on whatever address they listen', async () => {
    const [first, second] = [await take(), await take()];
    await serveInside(first.namespace, '0.0.0.0', first.port);
    await serveInside(second.namespace, '127.0.0.1', second.port);
    expect(await readFromHost(app.address, first.port)).toBe('hello');
    expect(await readFromHost(app.address, second.port)).toBe('hello');
    await expect(readFromHost(app.address, second.port + 1)).rejects.toThrow('ECONNREFUSED');
  });

  it('may listen on the same port, also one below 1024, and the port of each leads to its own', async () => {
    const [first, second] = [await take(), await take()];
    await serveInside(first.namespace, '0.0.0.0', 3000);
    await serveInside(second.namespace, '0.0.0.0', 3001);
    for (const network of [first, second]) await networks.instances.leadPort('one', network, 3000);
    expect(await readFromHost(app.address, first.port)).toBe('hello');
    await expect(readFromHost(app.address, second.port)).rejects.toThrow('ECONNREFUSED');
    await networks.instances.leadPort('one', first, undefined);
    await expect(readFromHost(app.address, first.port)).rejects.toThrow('ECONNREFUSED');
    const setting = ['sysctl', '-n', 'net.ipv4.ip_unprivileged_port_start'];
    const { stdout } = await run('nsenter', [`--net=/run/netns/${first.namespace}`, ...setting]);
    expect(stdout.trim()).toBe('0');
  });

  it('reach neither each other, nor what runs in the network of their app, nor other apps, nor the host', async () => {
    const [first, second] = [await take(), await take()];
    const other = await networks.ensureNetwork('other');
    const ofOther = await take('other');
    await Promise.all([
      serveInside(second.namespace, '0.0.0.0', second.port),
      serveInside(app.namespace, '0.0.0.0', 4000),
      serveInside(ofOther.namespace, '0.0.0.0', ofOther.port),
    ]);
    const listener = createServer((socket) => socket.end());
    await new Promise<void>((resolve) => listener.listen(0, '0.0.0.0', resolve));
    const { port } = listener.address() as { port: number };
    const { stdout } = await run('ip', ['-n', app.namespace, '-json', 'route', 'show', 'default']);
    const [{ gateway: host } = { gateway: '' }] = JSON.parse(stdout) as { gateway: string }[];
    const gatewayOf = `198.18.0.${first.number * 4 + 1}`;
    const closed: [string, number][] = [
      [`198.18.0.${second.number * 4 + 2}`, second.port],
      [app.address, second.port],
      [app.address, 4000],
      [gatewayOf, 4000],
      ['127.0.0.1', 4000],
      [other.address, ofOther.port],
      [host, port],
      ['127.0.0.1', port],
      ['10.213.255.254', 80],
      ['169.254.169.254', 80],
    ];
    for (const [address, closedPort] of closed)
      expect([address, closedPort, await probeInside(first.namespace, address, closedPort)]).not.toContain('open');
    expect(await probeInside(app.namespace, `198.18.0.${second.number * 4 + 2}`, second.port)).not.toBe('open');
    expect(await probeInside(second.namespace, '127.0.0.1', second.port)).toBe('open');
    listener.close();
  });

  it('reach the internet as their app does', async () => {
    // Of this process: the test may run beside itself.
    const [name, block] = [`tstj${process.pid.toString(36)}`, (process.pid % 16) * 16];
    const address = `203.0.113.${block + 8}`;
    await startHost(name, address, `203.0.113.${block + 1}`);
    try {
      await serveInside(name, '0.0.0.0', 80);
      expect(await probeInside((await take()).namespace, address, 80)).toBe('open');
    } finally {
      await stopHost(name);
    }
  });

  it("reach their app's add-ons on their own loopback, also those that come while they run", async () => {
    const listener = createServer((socket) => socket.end());
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    const { port } = listener.address() as { port: number };
    const before = await take();
    await serveInside(app.namespace, '127.0.0.1', 15_322);
    await networks.openPorts('one', { toHost: [port], fromHost: [15_322] });
    const after = await take();
    for (const { namespace } of [before, after])
      for (const addon of [port, 15_322]) expect(await probeInside(namespace, '127.0.0.1', addon)).toBe('open');
    await networks.openPorts('one', { toHost: [], fromHost: [] });
    for (const { namespace } of [before, after])
      for (const addon of [port, 15_322]) expect(await probeInside(namespace, '127.0.0.1', addon)).toBe('ECONNREFUSED');
    listener.close();
  });

  it('are used again with another port, are few when they are free, and go with their app', async () => {
    const taken = await Promise.all(Array.from({ length: 8 }, () => take()));
    expect(new Set(taken.map(({ namespace }) => namespace)).size).toBe(8);
    expect(await listNamespaces()).toHaveLength(8);
    for (const { number } of taken) await networks.instances.free('one', number);
    expect(await listNamespaces()).toHaveLength(4);
    const again = await take();
    expect(await listNamespaces()).toHaveLength(4);
    expect(taken.map(({ port }) => port)).not.toContain(again.port);
    await networks.deleteNetwork('one');
    expect(await listNamespaces()).toEqual([]);
  });

  it('are kept over a restart of the platform: those in use stay, the others are taken first', async () => {
    const [first, second] = [await take(), await take()];
    await serveInside(first.namespace, '0.0.0.0', 3000);
    await networks.instances.leadPort('one', first, 3000);
    networks = await open();
    networks.instances.hold('one', { ...first, target: 3000 });
    expect(await readFromHost(app.address, first.port)).toBe('hello');
    expect((await take()).namespace).toBe(second.namespace);
    expect(await readFromHost(app.address, first.port)).toBe('hello');
  });

  it('leave what an earlier version has started in the network of the app as it is', async () => {
    await serveInside(app.namespace, '127.0.0.1', 20_001);
    await take();
    expect(await readFromHost(app.address, 20_001)).toBe('hello');
  });
});
