/**
 * A network of its own for each app, as plans: addresses, the commands that create it and the firewall rules. Nothing here runs
 * a command; `networks.ts` does.
 *
 * An app's network namespace is joined to the host by a veth pair. From inside, the app reaches its own loopback, the internet,
 * the resolvers and its add-ons. From outside, only the host reaches it. Kernel interfaces: veth(4), ip-netns(8), nft(8).
 */
import { isIPv4 } from 'node:net';

/** Networks that an app never reaches: the host, private networks and everything else that is not the internet. */
export const closedNetworks = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
] as const;

/** The names and addresses of one app's network. */
export interface NetworkAddresses {
  /** Of the network namespace, in /run/netns. */
  readonly namespace: string;
  /** Of the host's end of the veth pair; at most 15 characters. */
  readonly hostInterface: string;
  /** The host as seen from inside. */
  readonly hostAddress: string;
  /** The app as seen from the host. */
  readonly address: string;
}

/** The app's end of the veth pair, inside its namespace. */
export const appInterface = 'eth0';

/** Four addresses each: network, host, app, broadcast. */
const subnetBits = 30;

/** How many apps fit into a range. @param range as '10.213.0.0/16' */
export function countNetworks(range: string): number {
  return 2 ** (subnetBits - parseRange(range).bits);
}

/**
 * The addresses of the network with a number.
 * @param platform 8 hex digits that tell the platforms of one machine apart
 * @param index from 0 to `countNetworks(range) - 1`
 */
export function planAddresses(platform: string, range: string, index: number): NetworkAddresses {
  const { base } = parseRange(range);
  const first = base + index * 4;
  const name = `${interfacePrefix(platform)}${index.toString(36)}`;
  return { namespace: name, hostInterface: name, hostAddress: formatAddress(first + 1), address: formatAddress(first + 2) };
}

/** All four addresses of a network: none of them may be in use elsewhere. */
export function listAddresses({ hostAddress }: Pick<NetworkAddresses, 'hostAddress'>): readonly string[] {
  const { base } = parseRange(`${hostAddress}/${subnetBits}`);
  return [0, 1, 2, 3].map((offset) => formatAddress(base + offset));
}

/** Matches the interfaces of the networks of all platforms on the machine. */
export const anyAppInterface = /^paas[0-9a-f]{6}[0-9a-z]+$/;

/** What the names of all interfaces of a platform begin with. */
export function interfacePrefix(platform: string): string {
  return `paas${platform.slice(0, 6)}`;
}

/** Lines for `ip -batch`, in order: on the host they create the namespace and its interfaces, inside they bring them up. */
export function planCreation({ namespace, hostInterface, hostAddress, address }: NetworkAddresses): {
  readonly host: readonly string[];
  readonly inside: readonly string[];
} {
  return {
    host: [
      `netns add ${namespace}`,
      `link add ${hostInterface} type veth peer name ${appInterface} netns ${namespace}`,
      `addr add ${hostAddress}/${subnetBits} dev ${hostInterface}`,
      `link set ${hostInterface} up`,
    ],
    inside: [
      `addr add ${address}/${subnetBits} dev ${appInterface}`,
      'link set lo up',
      `link set ${appInterface} up`,
      `route add default via ${hostAddress}`,
    ],
  };
}

/** Kernel settings, as paths below /proc/sys and values. */
export interface KernelSetting {
  readonly path: string;
  readonly value: string;
}

/** Script for a shell inside a namespace. Kernels without IPv6 lack its settings. */
export function settingScript(settings: readonly KernelSetting[]): string {
  return settings
    .map(({ path, value }) => `[ ! -e /proc/sys/${path} ] || echo ${value} > /proc/sys/${path} || exit 1\n`)
    .join('');
}

/** Settings inside the namespace: connections may be translated to the loopback, and IPv6 is off. */
export const settingsInside: readonly KernelSetting[] = [
  { path: `net/ipv4/conf/${appInterface}/route_localnet`, value: '1' },
  { path: `net/ipv6/conf/${appInterface}/disable_ipv6`, value: '1' },
];

/** Settings on the host for one app's interface. */
export function settingsOutside({ hostInterface }: Pick<NetworkAddresses, 'hostInterface'>): readonly KernelSetting[] {
  return [
    { path: `net/ipv4/conf/${hostInterface}/route_localnet`, value: '1' },
    { path: `net/ipv4/conf/${hostInterface}/forwarding`, value: '1' },
    { path: `net/ipv6/conf/${hostInterface}/disable_ipv6`, value: '1' },
  ];
}

/**
 * Rules inside the namespace. What arrives from the host is translated to the loopback, so that an app which listens on
 * 127.0.0.1 only can serve. The ports of the app's add-ons on its loopback lead to the host.
 * @param addonPorts TCP ports on the host's loopback
 * @param behind what happens to TCP connections that arrive, and more chains, where networks of instances lie behind this one
 */
export function planRulesInside(
  { hostAddress, address }: Pick<NetworkAddresses, 'hostAddress' | 'address'>,
  addonPorts: readonly number[],
  behind: { readonly arriving: string; readonly more: string } = { arriving: 'dnat to 127.0.0.1', more: '' },
): string {
  const addons =
    addonPorts.length === 0 ? '' : `    ip daddr 127.0.0.1 tcp dport { ${addonPorts.join(', ')} } dnat to ${hostAddress}\n`;
  return `table ip paas
delete table ip paas
table ip paas {
  chain prerouting {
    type nat hook prerouting priority dstnat;
    iifname "${appInterface}" ip daddr ${address} meta l4proto tcp ${behind.arriving}
  }
  chain output {
    type nat hook output priority -100;
${addons}  }
  chain postrouting {
    type nat hook postrouting priority srcnat;
    oifname "${appInterface}" ip saddr 127.0.0.0/8 snat to ${address}
  }
${behind.more}}
`;
}

/** TCP ports that lead from one loopback to another. */
export interface OpenPorts {
  /** Ports on the host's loopback that the app reaches on its own: add-ons that run on the host. */
  readonly toHost: readonly number[];
  /** Ports on the app's loopback that users of the host reach on the host's: add-ons that run beside the app. */
  readonly fromHost: readonly number[];
}

/** What the firewall of a platform allows beyond the internet. */
export interface FirewallSpec {
  /** 8 hex digits; see `planAddresses`. */
  readonly platform: string;
  /** IPv4 addresses of the host's DNS resolvers; they may be private. */
  readonly resolvers: readonly string[];
  /** Networks that the operator allows although they are closed, as '10.1.0.0/16'. */
  readonly allowedNetworks: readonly string[];
  /** The open ports of each app. */
  readonly apps: readonly (Pick<NetworkAddresses, 'hostInterface' | 'address'> & OpenPorts)[];
  /** Interfaces on which forwarding was enabled for the apps only: new connections of others are not forwarded from there. */
  readonly uplinks: readonly string[];
}

/** Name of the nftables table with the rules of a platform. */
export function firewallTable(platform: string): string {
  return `paas_${platform}`;
}

/**
 * Rules on the host, for all apps of a platform. Apps reach the internet, the resolvers and allowed networks; on the host itself
 * only their own add-ons, which see them come from 127.0.0.1. Only root on the host opens connections to apps; apps do not reach
 * each other.
 */
export function planFirewall({ platform, resolvers, allowedNetworks, apps, uplinks }: FirewallSpec): string {
  const table = `inet ${firewallTable(platform)}`;
  const interfaces = `"${interfacePrefix(platform)}*"`;
  const dns = resolvers.filter(isIPv4);
  const onHost = apps.flatMap(({ hostInterface, toHost }) => toHost.map((port) => `"${hostInterface}" . ${port}`));
  const inApps = apps.flatMap(({ address, fromHost }) => fromHost.map((port) => `${port} : ${address}`));
  return `table ${table}
delete table ${table}
table ${table} {
  set closed {
    type ipv4_addr; flags interval; auto-merge
    elements = { ${closedNetworks.join(', ')} }
  }
${set('allowed', 'ipv4_addr; flags interval; auto-merge', allowedNetworks)}${set('resolvers', 'ipv4_addr', dns)}${set('addons', 'ifname . inet_service', onHost)}${set(
  'uplinks',
  'ifname',
  uplinks.map((name) => `"${name}"`),
)}
  map servers {
    type inet_service : ipv4_addr
${inApps.length === 0 ? '' : `    elements = { ${inApps.join(', ')} }\n`}  }
  chain local {
    type nat hook output priority -100;
    ip daddr 127.0.0.1 dnat ip to tcp dport map @servers
  }
  chain prerouting {
    type nat hook prerouting priority dstnat;
    iifname . tcp dport @addons fib daddr type local dnat ip to 127.0.0.1
  }
  chain sources {
    type nat hook input priority 100;
    ct status dnat iifname . tcp dport @addons snat ip to 127.0.0.1
  }
  chain input {
    type filter hook input priority filter - 10;
    iifname != ${interfaces} accept
    ct state established,related accept
    ct status dnat iifname . tcp dport @addons accept
    drop
  }
  chain output {
    type filter hook output priority filter - 10;
    oifname ${interfaces} ct state new ct status ! dnat meta skuid != 0 drop
  }
  chain forward {
    type filter hook forward priority filter - 10;
    iifname ${interfaces} goto leaving
    oifname ${interfaces} goto entering
    iifname @uplinks ct state new ct status ! dnat drop
  }
  chain leaving {
    meta nfproto ipv6 drop
    ct state established,related accept
    ip daddr @resolvers meta l4proto { tcp, udp } th dport 53 accept
    ip daddr @allowed accept
    ip daddr @closed drop
    fib daddr type != unicast drop
    accept
  }
  chain entering {
    ct state established,related accept
    drop
  }
  chain postrouting {
    type nat hook postrouting priority srcnat;
    oifname ${interfaces} ip saddr 127.0.0.0/8 masquerade
    iifname ${interfaces} oifname != ${interfaces} masquerade
  }
}
`;
}

function set(name: string, type: string, elements: readonly string[]): string {
  const filled = elements.length === 0 ? '' : `    elements = { ${elements.join(', ')} }\n`;
  return `  set ${name} {\n    type ${type}\n${filled}  }\n`;
}

/** @throws RangeError for text that is no IPv4 network of at most 30 bits */
function parseRange(range: string): { base: number; bits: number } {
  const [address = '', text = ''] = range.split('/');
  const bits = Number(text);
  if (!isIPv4(address) || !/^\d{1,2}$/.test(text) || bits > subnetBits || bits < 8)
    throw new RangeError(`${range} is not an IPv4 network such as 10.213.0.0/16.`);
  const number = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  return { base: number - (number % 2 ** (32 - bits)), bits };
}

/** @returns dotted decimal */
export function formatAddress(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join('.');
}
