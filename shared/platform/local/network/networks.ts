import { createHash } from 'node:crypto';
import { findExecutable } from '#shared/files/find-executable.ts';
import { createKeyedMutex } from '#shared/keyed-mutex.ts';
import { flowTable, planFlowLimits } from './flow-limits.ts';
import { createInstanceNetworks, type InstanceNetworks } from './instance-networks.ts';
import { type NetworkClaim, type NetworkClaims, openNetworkClaims } from './network-claims.ts';
import {
  applyRules,
  createNetwork,
  enableForwarding,
  networkExists,
  readResolvers as readHostResolvers,
  readRoutes,
  removeNetwork,
  removeTable,
} from './network-commands.ts';
import {
  anyAppInterface,
  countNetworks,
  firewallTable,
  listAddresses,
  type NetworkAddresses,
  type OpenPorts,
  planAddresses,
  planFirewall,
  planRulesInside,
} from './network-plan.ts';
import { findUsedBlocks } from './used-blocks.ts';

/** The network of one app. */
export interface AppNetwork {
  /** Name of the network namespace in /run/netns, for `nsenter --net=/run/netns/<name>`. */
  readonly namespace: string;
  /** IPv4 address at which the host reaches what listens inside, on whatever address it listens. */
  readonly address: string;
}

/** Networks of apps on this machine. */
export interface Networks {
  /** Networks of their own for instances, behind those of their apps. */
  readonly instances: InstanceNetworks;
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
  /** IPv4 addresses of DNS servers, which may be private; by default the host's. */
  readonly readResolvers?: () => Promise<readonly string[]>;
}

const claimDirectory = '/run/paas-networks';
const commands = ['ip', 'nft', 'nsenter'] as const;

/**
 * Opens the networks of a platform: needs root, iproute2, nftables and a kernel with network namespaces. Networks outlive this
 * process, so that apps that outlive it keep theirs; the next process finds them by their claims.
 */
export async function openNetworks(options: NetworksOptions): Promise<Networks> {
  const { dataDir, path, range, allowedNetworks, readResolvers = readHostResolvers } = options;
  const platform = createHash('sha256').update(dataDir).digest('hex').slice(0, 8);
  const claims = openNetworkClaims(claimDirectory, { platform, dataDir, count: countNetworks(range) });
  const open = new Map<string, Promise<NetworkAddresses>>();
  /** Changes to one owner's network run one after the other. */
  const mutex = createKeyedMutex<string>();
  let applying: Promise<void> = Promise.resolve();
  /** A change that has not begun yet: it will include whatever is claimed until then. */
  let waiting: Promise<void> | undefined;
  let appliedResolvers = '';

  const addressesOf = (claim: NetworkClaim): NetworkAddresses => planAddresses(claim.platform, range, claim.index);

  /** One at a time: the last one to read the claims is the last one to apply them. */
  function applyFirewall(): Promise<void> {
    if (waiting !== undefined) return waiting;
    const next = applying.then(async () => {
      waiting = undefined;
      const [list, resolvers, uplinks] = await Promise.all([claims.list(), readResolvers(), enableForwarding()]);
      const apps = list.map((claim) => ({ ...addressesOf(claim), ...claim.ports }));
      await applyRules(planFirewall({ platform, resolvers, allowedNetworks, apps, uplinks }));
      appliedResolvers = resolvers.join();
    });
    waiting = next;
    applying = next.catch(() => undefined);
    return next;
  }

  /** The host may have got others since, and code that starts now is told of these. */
  async function followResolvers(): Promise<void> {
    if ((await readResolvers()).join() !== appliedResolvers) await applyFirewall();
  }

  async function findFreeNumbers(): Promise<(index: number) => boolean> {
    const used = findUsedBlocks(await readRoutes(), range, anyAppInterface);
    return (index) => !listAddresses(planAddresses(platform, range, index)).some((address) => used.check(address));
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
    const { claim, isNew } = await claims.claim(owner, findFreeNumbers);
    const addresses = addressesOf(claim);
    if (!isNew && (await networkExists(addresses))) return addresses;
    await removeNetwork(addresses);
    await createNetwork(addresses);
    await applyRules(planRulesInside(addresses, claim.ports.toHost), addresses.namespace);
    return addresses;
  }

  const instances = createInstanceNetworks({
    async findApp(owner) {
      const addresses = await networkOf(owner);
      return { addresses, ports: (await claims.find(owner))?.ports ?? { toHost: [], fromHost: [] } };
    },
  });

  async function prepare(): Promise<void> {
    await removeAbandoned(claims, range);
    await claims.register();
    // Not every kernel counts flows; all limit their rate.
    await applyRules(planFlowLimits(platform, true)).catch(() => applyRules(planFlowLimits(platform, false)));
    await applyFirewall();
  }

  return {
    problem: await findProblem(path, prepare),
    instances,
    async ensureNetwork(owner) {
      const [{ namespace, address }] = await Promise.all([networkOf(owner), followResolvers()]);
      return { namespace, address };
    },
    openPorts: (owner, change) =>
      mutex.run(owner, async () => {
        await networkOf(owner);
        const claim = await claims.find(owner);
        if (claim === undefined) throw new Error('The network was deleted meanwhile.');
        const ports = { ...claim.ports, ...change };
        if (JSON.stringify(claim.ports) === JSON.stringify(ports)) return;
        await claims.setPorts(claim, ports);
        await applyFirewall();
        await instances.applyAll(owner);
      }),
    deleteNetwork: (owner) =>
      mutex.run(owner, async () => {
        await open.get(owner)?.catch(() => undefined);
        open.delete(owner);
        instances.forget(owner);
        const claim = await claims.find(owner);
        if (claim === undefined) return false;
        const { toHost, fromHost } = claim.ports;
        await removeNetwork(addressesOf(claim));
        if (toHost.length + fromHost.length > 0) {
          // Before the number is free: the next app with these addresses must not get the ports.
          await claims.setPorts(claim, { toHost: [], fromHost: [] });
          await applyFirewall();
        }
        await claims.release(claim);
        return true;
      }),
    async deleteAll() {
      await Promise.allSettled(open.values());
      open.clear();
      for (const claim of await claims.list()) {
        await removeNetwork(addressesOf(claim));
        await claims.release(claim);
      }
      await Promise.all([firewallTable(platform), flowTable(platform)].map(removeTable));
      await claims.unregister(platform);
    },
  };
}

/** Frees what platforms have left whose data directories were deleted. */
async function removeAbandoned(claims: NetworkClaims, range: string): Promise<void> {
  for (const { platform, claims: left } of await claims.listAbandoned()) {
    await Promise.all([firewallTable(platform), flowTable(platform)].map(removeTable));
    for (const claim of left) {
      await removeNetwork(planAddresses(platform, range, claim.index));
      await claims.release(claim);
    }
    await claims.unregister(platform);
  }
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
