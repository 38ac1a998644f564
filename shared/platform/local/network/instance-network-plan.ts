/**
 * A network for each instance of an app, behind the network of the app, as plans: addresses, commands and firewall rules. To the host
 * all instances of an app are one address, so what the firewall there allows an app it allows all of them together.
 *
 * The app's namespace forwards what arrives on the ports of an instance, and what its instances send.
 */
import {
  appInterface,
  formatAddress,
  type KernelSetting,
  type NetworkAddresses,
  type OpenPorts,
  planRulesInside,
  settingScript,
  settingsInside,
} from './network-plan.ts';

/** Of the app's ends of the veth pairs to its instances, in the app's namespace. */
const instanceInterfaces = 'paas-';
/** Never routed on the internet, and closed to apps on the host: a range of its own in each app's namespace. */
const firstAddress = 198 * 2 ** 24 + 18 * 2 ** 16;
const subnetBits = 30;

/** Ports below those that instances in the app's own network have, as earlier versions of the platform gave them. */
const firstPort = 10_000;
/** Ports that lead into one network. They take turns, so that a route of an ended instance leads to no other one. */
const portsEach = 64;
/** How many networks an app can have for its instances. */
export const mostInstanceNetworks = Math.floor(10_000 / portsEach);

/** The names and addresses of one instance's network. */
export interface InstanceAddresses {
  /** Of the network namespace, in /run/netns. */
  readonly namespace: string;
  /** The end of the veth pair that is in the app's namespace. */
  readonly appEnd: string;
  /** The app's namespace as seen by the instance. */
  readonly gateway: string;
  readonly address: string;
  /** TCP ports at the app's address that lead into it; both inclusive. */
  readonly ports: { readonly from: number; readonly to: number };
}

/** What the names of the namespaces of an app's instances begin with. */
export function instancePrefix(app: Pick<NetworkAddresses, 'namespace'>): string {
  return `${app.namespace}-`;
}

/** @param number from 0 to `mostInstanceNetworks - 1` */
export function planInstanceAddresses(app: Pick<NetworkAddresses, 'namespace'>, number: number): InstanceAddresses {
  const first = firstAddress + number * 4;
  const from = firstPort + number * portsEach;
  return {
    namespace: `${instancePrefix(app)}${number}`,
    appEnd: `${instanceInterfaces}${number}`,
    gateway: formatAddress(first + 1),
    address: formatAddress(first + 2),
    ports: { from, to: from + portsEach - 1 },
  };
}

/** A port that leads to another port of its instance. */
export interface ServedPort {
  /** Number of the instance's network. */
  readonly network: number;
  /** One of the ports that lead into it. */
  readonly port: number;
  /** The port inside on which the instance listens. */
  readonly target: number;
}

/**
 * Rules in the app's namespace. Instances reach the internet and the app's key-value server as the app does, but neither each other nor
 * what else runs in the app's namespace, which does not reach them either.
 */
export function planRulesOfApp(app: NetworkAddresses, { toHost, fromHost }: OpenPorts, served: readonly ServedPort[]): string {
  const instances = `"${instanceInterfaces}*"`;
  const networks = Array.from({ length: mostInstanceNetworks }, (_, number) => planInstanceAddresses(app, number));
  const ranges = networks.map(({ ports, address }) => `${ports.from}-${ports.to} : ${address}`);
  const targets = served.map(({ network, port, target }) => `${port} : ${networks[network]?.address ?? ''} . ${target}`);
  const servers = fromHost.length === 0 ? '' : `tcp dport { ${fromHost.join(', ')} } dnat to 127.0.0.1`;
  const toServers =
    servers === ''
      ? ''
      : `  chain from_instances {
    type nat hook prerouting priority dstnat;
    iifname ${instances} fib daddr type local ${servers}
  }
`;
  const more = `  map instances {
    type inet_service : ipv4_addr; flags interval
    elements = { ${ranges.join(', ')} }
  }
  map served {
    type inet_service : ipv4_addr . inet_service
${targets.length === 0 ? '' : `    elements = { ${targets.join(', ')} }\n`}  }
  chain arriving {
    ${servers}
    dnat ip to tcp dport map @served
    dnat ip to tcp dport map @instances
    meta l4proto tcp dnat to 127.0.0.1
  }
${toServers}  chain to_internet {
    type nat hook postrouting priority srcnat;
    iifname ${instances} oifname "${appInterface}" snat to ${app.address}
  }
  chain forward {
    type filter hook forward priority filter;
    iifname ${instances} oifname "${appInterface}" accept
    iifname "${appInterface}" oifname ${instances} ct state established,related accept
    iifname "${appInterface}" oifname ${instances} ct status dnat accept
    meta l4proto tcp reject with tcp reset
    drop
  }
  chain input {
    type filter hook input priority filter;
    iifname != ${instances} accept
    ct state established,related accept
    ct status dnat accept
    meta l4proto tcp reject with tcp reset
    drop
  }
  chain to_instances {
    type filter hook output priority filter;
    oifname ${instances} ct state new drop
  }
`;
  return planRulesInside(app, toHost, { arriving: 'goto arriving', more });
}

/** Rules in an instance's namespace. The ports of the app's add-ons on its loopback lead to the app's namespace and to the host. */
export function planRulesOfInstance(
  app: NetworkAddresses,
  { gateway, address }: InstanceAddresses,
  { toHost, fromHost }: OpenPorts,
): string {
  const rules = planRulesInside({ hostAddress: app.hostAddress, address }, toHost);
  if (fromHost.length === 0) return rules;
  return `${rules}
table ip paas {
  chain output {
    ip daddr 127.0.0.1 tcp dport { ${fromHost.join(', ')} } dnat to ${gateway}
  }
}
`;
}

/** Settings of an app's namespace with instances behind it: it forwards. */
export const settingsOfApp: readonly KernelSetting[] = [{ path: 'net/ipv4/ip_forward', value: '1' }];

/**
 * Script for a shell on the host that creates the network of an instance. One shell, since the control plane is a large process and each
 * of its forks takes long. An instance may listen on any port, as in other container engines: nobody else is there.
 */
export function planInstanceCreation(app: NetworkAddresses, instance: InstanceAddresses, rules: string): string {
  const { namespace, appEnd, gateway, address } = instance;
  const settingsOutside = [
    { path: `net/ipv6/conf/${appEnd}/disable_ipv6`, value: '1' },
    { path: `net/ipv4/conf/${appEnd}/route_localnet`, value: '1' },
  ];
  return `set -e
ip -batch - <<'end'
netns add ${namespace}
link add ${appEnd} netns ${app.namespace} type veth peer name ${appInterface} netns ${namespace}
end
nsenter --net=/run/netns/${app.namespace} /bin/sh -s <<'end'
${settingScript(settingsOutside)}
exec ip -batch - <<'batch'
addr add ${gateway}/${subnetBits} dev ${appEnd}
link set ${appEnd} up
batch
end
nsenter --net=/run/netns/${namespace} /bin/sh -s <<'end'
${settingScript([...settingsInside, { path: 'net/ipv4/ip_unprivileged_port_start', value: '0' }])}
ip -batch - <<'batch' || exit 1
addr add ${address}/${subnetBits} dev ${appInterface}
link set lo up
link set ${appInterface} up
route add default via ${gateway}
batch
exec nft -f - <<'rules'
${rules}
rules
end
`;
}
