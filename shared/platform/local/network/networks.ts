import { createHash } from 'node:crypto';
import { findExecutable } from '#shared/files/find-executable.ts';
import { type NetworkClaim, openNetworkClaims } from './network-claims.ts';
import {
  applyRules,
  createNetwork,
  enableForwarding,
  networkExists,
  readResolvers,
  removeNetwork,
  removeTable,
} from './network-commands.ts';
import {
  countNetworks,
  firewallTable,
  type NetworkAddresses,
  type OpenPorts,
  planAddresses,
  planFirewall,
  planRulesInside,
} from './network-plan.ts';

/** The network of one app. */
export interface AppNetwork {
  /** Name of the network namespace in /run/netns, for `nsenter --net=/run/netns/<name>`. */
  readonly namespace: string;
  /** IPv4 address at which the host reaches what listens inside, on whatever address it listens. */
  readonly address: string;
}

/** Networks of apps on this machine. */
export interface Networks {
  /** Why apps cannot have networks of their own, and the command that changes that; undefined if they can. */
  readonly problem: string | undefined;
  /** The network of an owner (an app's id), created if it is missing. */
  ensureNetwork(owner: string): Promise<AppNetwork>;
  /** Replaces the ports of one kind that are open between an owner's network and the host; all others are closed. */
  openPorts(owner: string, ports: Partial<OpenPorts>): Promise<void>;
  /** False if there was none. Processes inside lose their connections. */
  deleteNetwork(owner: string): Promise<boolean>;
  /** Deletes every network of this platform and the firewall rules. */
  deleteAll(): Promise<void>;
}

/** Dependencies of {@link openNetworks}. */
export interface NetworksOptions {
  /** Absolute; tells the platforms of one machine apart. */
  readonly dataDir: string;
  /** The PATH on which ip, nft and nsenter are looked up. */
  readonly path: string;
  /** IPv4 range from which the apps get addresses, as '10.213.0.0/16'. */
  readonly range: string;
  /** Networks that apps may reach although they are private. */
  readonly allowedNetworks: readonly string[];
}

const claimDirectory = '/run/paas-networks';
const commands = ['ip', 'nft', 'nsenter'] as const;

/**
 * Opens the networks of a platform: needs root, iproute2, nftables and a kernel with network namespaces. Networks outlive this
 * process, so that apps that outlive it keep theirs; the next process finds them by their claims.
 */
export async function openNetworks({ dataDir, path, range, allowedNetworks }: NetworksOptions): Promise<Networks> {
  const platform = createHash('sha256').update(dataDir).digest('hex').slice(0, 8);
  const claims = openNetworkClaims(claimDirectory, { platform, dataDir, count: countNetworks(range) });
  const open = new Map<string, Promise<NetworkAddresses>>();
  let applying: Promise<void> = Promise.resolve();

  const addressesOf = (claim: NetworkClaim): NetworkAddresses => planAddresses(claim.platform, range, claim.index);

  /** One at a time: the last one to read the claims is the last one to apply them. */
  function applyFirewall(): Promise<void> {
    const next = applying.then(async () => {
      const apps = (await claims.list()).map((claim) => ({ ...addressesOf(claim), ...claim.ports }));
      const uplinks = await enableForwarding();
      await applyRules(planFirewall({ platform, resolvers: await readResolvers(), allowedNetworks, apps, uplinks }));
    });
    applying = next.catch(() => undefined);
    return next;
  }

  function networkOf(owner: string): Promise<NetworkAddresses> {
    const known = open.get(owner);
    if (known !== undefined) return known;
    const opening = openNetwork(owner);
    open.set(owner, opening);
    opening.catch(() => open.delete(owner));
    return opening;
  }

  async function openNetwork(owner: string): Promise<NetworkAddresses> {
    const { claim, isNew } = await claims.claim(owner);
    const addresses = addressesOf(claim);
    if (!isNew && (await networkExists(addresses))) return addresses;
    await removeNetwork(addresses);
    await createNetwork(addresses);
    await applyRules(planRulesInside(addresses, claim.ports.toHost), addresses.namespace);
    return addresses;
  }

  async function remove(claim: NetworkClaim): Promise<void> {
    await removeNetwork(addressesOf(claim));
    await claims.release(claim);
  }

  async function prepare(): Promise<void> {
    for (const claim of await claims.listAbandoned()) {
      await removeTable(firewallTable(claim.platform));
      await remove(claim);
    }
    await applyFirewall();
  }

  return {
    problem: await findProblem(path, prepare),
    async ensureNetwork(owner) {
      const { namespace, address } = await networkOf(owner);
      return { namespace, address };
    },
    async openPorts(owner, change) {
      const addresses = await networkOf(owner);
      const { claim } = await claims.claim(owner);
      const ports = { ...claim.ports, ...change };
      if (JSON.stringify(claim.ports) === JSON.stringify(ports)) return;
      await claims.setPorts(claim, ports);
      await applyFirewall();
      await applyRules(planRulesInside(addresses, ports.toHost), addresses.namespace);
    },
    async deleteNetwork(owner) {
      await open.get(owner)?.catch(() => undefined);
      open.delete(owner);
      const claim = await claims.find(owner);
      if (claim === undefined) return false;
      await remove(claim);
      return true;
    },
    async deleteAll() {
      await Promise.allSettled(open.values());
      open.clear();
      for (const claim of await claims.list()) await remove(claim);
      await removeTable(firewallTable(platform));
    },
  };
}

async function findProblem(path: string, prepare: () => Promise<void>): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'Apps have networks of their own only if the platform runs as root.';
  for (const command of commands) {
    if ((await findExecutable(command, path)) === undefined)
      return `The command ${command} is missing, so apps cannot have networks of their own. Install it: apt-get install -y iproute2 nftables util-linux`;
  }
  try {
    await prepare();
    return undefined;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return `The firewall between apps cannot be set up: ${reason}. The kernel must support nftables with NAT, and the platform must be allowed to use it.`;
  }
}
