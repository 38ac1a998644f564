import { readFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { freePort } from '#test/support/servers/free-port.ts';
import type { Attacker } from '../attacked-platform.ts';
import { byClient, byOperator, type Claim, inApp, inBuild, listOf, nothingReached, type Probe } from '../probe.ts';

/** Gained when a listener of the operator was reached, whatever the attacker says. */
function visited(claim: Claim, { canaries, neighbour }: Attacker): string | undefined {
  const visits = [...canaries.takeVisits(), ...neighbour.takeVisits()];
  return visits.length > 0 ? `reached ${[...new Set(visits)].join(', ')}` : nothingReached(claim ?? []);
}

/** Ports of the platform and of everything else that listens on the host. */
async function hostPorts({ platform }: Attacker): Promise<number[]> {
  const tables = await Promise.all(['tcp', 'tcp6'].map((table) => readFile(`/proc/net/${table}`, 'utf8')));
  const listening = tables.flatMap((table) => [...table.matchAll(/^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F:]+ 0A/gm)]);
  const ports = listening.map((match) => Number.parseInt(match[1] ?? '', 16));
  return [...new Set([...ports, platform.httpPort, platform.sshPort, platform.metricsPort])];
}

/** Where an instance of an app listens, as the host sees it. */
async function addressOf({ platform }: Attacker, app: string): Promise<[host: string, port: number]> {
  const routes = JSON.stringify(JSON.parse(await readFile(join(platform.dataDir, 'gateway/routes.json'), 'utf8')));
  const [, host = '', port = ''] = new RegExp(`"appName":"${app}".*?"host":"([0-9.]+)","port":(\\d+)`).exec(routes) ?? [];
  return [host, Number(port)];
}

/** Whether something accepts a connection on the host's loopback, and what it says. */
function whoAnswers(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: '127.0.0.1', port, timeout: 500 });
    socket
      .on('data', (data) => resolve(data.toString()))
      .on('error', () => resolve(''))
      .on('timeout', () => resolve(''));
    socket.on('close', () => resolve(''));
  });
}

/** Names and numbers of kinds of sockets that an app has no use for: domain, type and protocol of socket(2). */
const unusualSockets = [
  ['raw IPv4', 2, 3, 255],
  ['raw ICMP', 2, 3, 1],
  ['raw IPv6', 10, 3, 58],
  ['packets', 17, 3, 0x300],
  ['keys of IPsec', 15, 3, 2],
  ['kernel cryptography', 38, 5, 0],
  ['virtual machine', 40, 1, 0],
  ['virtual machine, datagrams', 40, 2, 0],
  ['Bluetooth', 31, 3, 1],
  ['TIPC', 30, 5, 0],
  ['RDS', 21, 5, 0],
  ['CAN', 29, 3, 1],
  ['X.25', 9, 5, 0],
  ['AX.25', 3, 5, 0],
  ['AppleTalk', 5, 2, 0],
  ['Netrom', 6, 5, 0],
  ['KCM', 41, 5, 0],
  ['XDP', 44, 3, 0],
  ['SMC', 43, 1, 0],
  ['RxRPC', 33, 2, 2],
  ['netfilter by netlink', 16, 3, 12],
  ['audit by netlink', 16, 3, 9],
  ['kernel events by netlink', 16, 3, 15],
] as const;

export const networkProbes: readonly Probe[] = [
  {
    name: 'reaches no port of the host',
    family: 'network',
    gain: 'PostgreSQL, metrics, other apps and add-ons, all that trusts its own machine',
    quick: true,
    attack: (attacker) =>
      byClient(async () => {
        const ports = await hostPorts(attacker);
        const hosts = [...new Set(attacker.canaries.targets.map(([host]) => host)), '10.213.0.1', '0.0.0.0', '::ffff:127.0.0.1'];
        const targets = hosts.flatMap((host) => ports.map((port) => [host, port]));
        const [, own] = await addressOf(attacker, attacker.app.name);
        const open = listOf(await attacker.attempt({ name: 'connectTo', args: { targets } }));
        return open.filter((target) => !target.endsWith(`:${own}`));
      }),
    judge: visited,
    control: ({ canaries }) => byOperator('connectTo', { targets: canaries.targets }),
  },
  {
    name: 'reaches no port of the host in a build',
    family: 'network',
    gain: 'all that trusts its own machine',
    attack: inBuild('connectTo', {
      targets: ['127.0.0.1', '10.213.0.1'].flatMap((host) => [22, 80, 5432, 6379, 8080].map((port) => [host, port])),
    }),
    judge: visited,
  },
  {
    name: 'reaches no private network and no metadata service',
    family: 'network',
    gain: "the operator's other machines and the credentials of the cloud account",
    quick: true,
    attack: ({ neighbour }) => inApp('connectTo', { targets: neighbour.targets }),
    judge: visited,
    control: ({ neighbour }) => byOperator('connectTo', { targets: neighbour.targets }),
  },
  {
    name: "reaches no other tenant's app but through the gateway",
    family: 'network',
    gain: 'requests to it that the gateway does not see',
    quick: true,
    attack: (attacker) =>
      byClient(async () => attacker.attempt({ name: 'connectTo', args: { targets: [await addressOf(attacker, 'ada')] } })),
    judge: (claim) => nothingReached(claim),
    control: (attacker) =>
      byClient(async () => attacker.attemptOutside({ name: 'connectTo', args: { targets: [await addressOf(attacker, 'ada')] } })),
  },
  {
    name: 'reaches no socket of the host by name',
    family: 'network',
    gain: 'services of the host that listen on Unix sockets: containers, buses, displays',
    quick: true,
    attack: ({ canaries }) =>
      inApp('connectToSockets', {
        paths: [...canaries.sockets, '/run/docker.sock', '/var/run/docker.sock', '/run/dbus/system_bus_socket'],
      }),
    judge: visited,
    control: ({ canaries }) => byOperator('connectToSockets', { paths: canaries.sockets }),
  },
  {
    name: 'sends no datagram to the host or its networks',
    family: 'network',
    gain: 'services of the host that need no connection: names, logs, time, device discovery',
    attack: ({ canaries, neighbour }) =>
      inApp('sendDatagrams', {
        targets: [...canaries.targets, ...neighbour.targets, ['255.255.255.255', 0], ['224.0.0.1', 0]]
          .filter(([host]) => !String(host).includes(':'))
          .map(([host]) => [host, canaries.datagramPort]),
        message: 'from mallory',
      }),
    judge: (_, attacker) => visited([], attacker),
    control: ({ canaries }) =>
      byOperator('sendDatagrams', { targets: [['127.0.0.1', canaries.datagramPort]], message: 'from the operator' }),
  },
  {
    name: "takes no port of the host's",
    family: 'network',
    gain: 'passwords and requests that were meant for a server that is down',
    quick: true,
    attack: (attacker) =>
      byClient(async () => {
        const port = await freePort();
        const taken = listOf(await attacker.attempt({ name: 'listenOn', args: { ports: [port, attacker.platform.httpPort] } }));
        if (!taken.includes(String(port))) return [`it could not even listen: ${taken.join()}`];
        return [await whoAnswers(port), await whoAnswers(attacker.platform.httpPort)].filter((said) => said.includes('mallory'));
      }),
    judge: nothingReached,
  },
  {
    name: 'makes no sockets but those of the internet and its own machine',
    family: 'network',
    gain: 'forged packets, the hypervisor of the machine, parts of the kernel that few have looked at',
    quick: true,
    attack: inApp('makeSockets', { kinds: unusualSockets }),
    judge: nothingReached,
    control: byOperator('makeSockets', { kinds: unusualSockets }),
  },
  {
    name: 'makes no such sockets in a build',
    family: 'network',
    gain: 'forged packets, the hypervisor of the machine, parts of the kernel that few have looked at',
    attack: inBuild('makeSockets', { kinds: unusualSockets }),
    judge: nothingReached,
  },
  {
    name: "sees no interface of the host's",
    family: 'network',
    gain: 'how many apps there are, and the networks of the operator',
    attack: inApp('listInterfaces'),
    judge: (claim) => nothingReached(listOf(claim).filter((name) => name !== 'lo' && name !== 'eth0')),
    control: byClient(() => Promise.resolve(Object.keys(networkInterfaces()).map((name) => (name === 'eth0' ? 'eth1' : name)))),
  },
  {
    name: "sees no sockets but its own app's",
    family: 'network',
    gain: 'who is connected to whom, and which ports are worth a try',
    attack: inApp('readFiles', { paths: ['tcp', 'tcp6', 'udp', 'unix', 'netlink'].map((table) => `/proc/net/${table}`) }),
    judge: foreignSocketsSeen,
    control: byOperator('readFiles', { paths: ['/proc/net/tcp', '/proc/net/unix'] }),
  },
];

/** The attacker may have tried ports of the platform by itself, but not that of the canary on every address. */
function foreignSocketsSeen(claim: Claim, { platform, canaries }: Attacker): string | undefined {
  const tables = Object.values(claim as Record<string, string>).join('\n');
  if (tables.includes(canaries.word) || tables.includes(platform.dataDir)) return "the operator's Unix sockets";
  const listening = [...tables.matchAll(/^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F:]+ 0A/gm)].map(([, port = '']) =>
    Number.parseInt(port, 16),
  );
  const foreign = canaries.targets.filter(([, port]) => listening.includes(port));
  return foreign.length === 0 ? undefined : `port ${foreign[0]?.[1]}`;
}
