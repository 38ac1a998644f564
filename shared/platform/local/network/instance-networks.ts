import { createKeyedMutex } from '#shared/keyed-mutex.ts';
import {
  type InstanceAddresses,
  mostInstanceNetworks,
  planInstanceAddresses,
  planRulesOfApp,
  planRulesOfInstance,
  type ServedPort,
} from './instance-network-plan.ts';
import {
  applyRules,
  createInstanceNetwork,
  listInstanceNetworks,
  prepareForInstances,
  removeInstanceNetwork,
} from './network-commands.ts';
import type { NetworkAddresses, OpenPorts } from './network-plan.ts';

/** The network of one instance. */
export interface InstanceNetwork {
  /** Among those of its app. */
  readonly number: number;
  /** Name of the network namespace in /run/netns. */
  readonly namespace: string;
  /** TCP port at the app's address that leads to the same port inside. */
  readonly port: number;
}

/** A network that an instance has, and where its port leads. */
export type HeldNetwork = Pick<InstanceNetwork, 'number' | 'port'> & {
  /** Another port inside that `port` leads to. */
  readonly target?: number | undefined;
};

/** Networks of their own for the instances of apps. Those that are free again are kept for the next instance, up to a few for each app. */
export interface InstanceNetworks {
  /** Says that an instance has a network, before any is taken: this process does not know it yet. */
  hold(owner: string, network: HeldNetwork): void;
  /**
   * A network that no other instance has.
   * @param before the one that the instance has had: it keeps that, and the port, which leads to itself again
   * @returns undefined if the app has the most that are possible: the instance shares the app's network
   */
  take(owner: string, before?: Pick<InstanceNetwork, 'number' | 'port'>): Promise<InstanceNetwork | undefined>;
  /** Makes the port of a network lead to another port inside. @param target undefined: to itself */
  leadPort(owner: string, network: Pick<InstanceNetwork, 'number' | 'port'>, target: number | undefined): Promise<void>;
  /** To be called when no process is left in it. */
  free(owner: string, number: number): Promise<void>;
}

/** What is known of one app's networks. */
interface AppNetworks {
  /** By the numbers of networks that instances have. */
  readonly taken: Map<number, { target?: ServedPort | undefined }>;
  /** Numbers of the networks that exist. */
  readonly existing: Set<number>;
  /** How often each was taken. */
  readonly uses: Map<number, number>;
  ready?: Promise<void> | undefined;
}

/** Free networks that are kept for an app, so that its next release finds them. */
const mostFree = 4;

/** Dependencies of {@link createInstanceNetworks}. */
export interface InstanceNetworksOptions {
  /** The app's own network, created if it is missing. */
  findApp(owner: string): Promise<{ addresses: NetworkAddresses; ports: OpenPorts }>;
}

/** The networks of instances, and what the networks of apps do for them. */
export interface AppsInstanceNetworks extends InstanceNetworks {
  /** Applies the rules of an app and its instances, after its open ports have changed. */
  applyAll(owner: string): Promise<void>;
  /** The app's network is gone, and with it those of its instances. */
  forget(owner: string): void;
}

/** @see InstanceNetworks */
export function createInstanceNetworks({ findApp }: InstanceNetworksOptions): AppsInstanceNetworks {
  const apps = new Map<string, AppNetworks>();
  const mutex = createKeyedMutex<string>();

  function appOf(owner: string): AppNetworks {
    const known = apps.get(owner);
    if (known !== undefined) return known;
    const app: AppNetworks = { taken: new Map(), existing: new Set(), uses: new Map() };
    apps.set(owner, app);
    return app;
  }

  /** The rules of the app's own network follow what is known here. */
  async function applyToApp(owner: string): Promise<void> {
    const { addresses, ports } = await findApp(owner);
    const served = [...appOf(owner).taken.values()].flatMap(({ target }) => target ?? []);
    await applyRules(planRulesOfApp(addresses, ports, served), addresses.namespace);
  }

  /** Once for each process: the app's network may be from an earlier version of the platform, and have instances of an earlier process. */
  function prepare(owner: string): Promise<void> {
    const app = appOf(owner);
    app.ready ??= (async () => {
      const { addresses } = await findApp(owner);
      for (const number of await listInstanceNetworks(addresses)) app.existing.add(number);
      await prepareForInstances(addresses);
      await mutex.run(owner, () => applyToApp(owner));
    })();
    app.ready.catch(() => {
      app.ready = undefined;
    });
    return app.ready;
  }

  async function create(owner: string, number: number): Promise<void> {
    const { addresses, ports } = await findApp(owner);
    const instance = planInstanceAddresses(addresses, number);
    await createInstanceNetwork(addresses, instance, planRulesOfInstance(addresses, instance, ports));
    appOf(owner).existing.add(number);
    // Ports that were opened meanwhile.
    const now = await findApp(owner);
    if (JSON.stringify(now.ports) !== JSON.stringify(ports))
      await applyRules(planRulesOfInstance(now.addresses, instance, now.ports), instance.namespace);
  }

  /** Free ones that exist come first. */
  function findFree({ taken, existing }: AppNetworks): number | undefined {
    const numbers = [...existing, ...Array(mostInstanceNetworks).keys()];
    return numbers.find((number) => !taken.has(number));
  }

  function nextPort(owner: string, { ports: { from, to } }: InstanceAddresses, number: number, avoided: OpenPorts): number {
    const { uses } = appOf(owner);
    const range = to - from + 1;
    // At first at random: an earlier process may have given out the first ports a moment ago.
    for (let use = uses.get(number) ?? Math.floor(Math.random() * range); ; use += 1) {
      const port = from + (use % range);
      if (avoided.toHost.includes(port) || avoided.fromHost.includes(port)) continue;
      uses.set(number, use + 1);
      return port;
    }
  }

  async function leadPort(owner: string, number: number, target: ServedPort | undefined): Promise<void> {
    const held = appOf(owner).taken.get(number);
    if (held === undefined || (held.target === undefined && target === undefined)) return;
    held.target = target;
    await mutex.run(owner, () => applyToApp(owner));
  }

  return {
    hold(owner, { number, port, target }) {
      appOf(owner).taken.set(number, { target: target === undefined ? undefined : { network: number, port, target } });
    },
    async take(owner, before) {
      const app = appOf(owner);
      await prepare(owner);
      const number = before?.number ?? findFree(app);
      if (number === undefined) return undefined;
      const held = app.taken.get(number);
      if (held === undefined) app.taken.set(number, {});
      try {
        await leadPort(owner, number, undefined);
        if (!app.existing.has(number)) await create(owner, number);
        const { addresses, ports } = await findApp(owner);
        const instance = planInstanceAddresses(addresses, number);
        return { number, namespace: instance.namespace, port: before?.port ?? nextPort(owner, instance, number, ports) };
      } catch (error) {
        if (held === undefined) app.taken.delete(number);
        throw error;
      }
    },
    leadPort: (owner, { number, port }, target) =>
      leadPort(owner, number, target === undefined ? undefined : { network: number, port, target }),
    async free(owner, number) {
      const app = apps.get(owner);
      if (app === undefined || !app.taken.has(number)) return;
      await leadPort(owner, number, undefined);
      const free = [...app.existing].filter((other) => !app.taken.has(other));
      if (free.length >= mostFree) {
        app.existing.delete(number);
        const { addresses } = await findApp(owner);
        await removeInstanceNetwork(addresses, planInstanceAddresses(addresses, number));
      }
      app.taken.delete(number);
    },
    applyAll: (owner) =>
      mutex.run(owner, async () => {
        await applyToApp(owner);
        const { addresses, ports } = await findApp(owner);
        const numbers = new Set([...(apps.get(owner)?.existing ?? []), ...(await listInstanceNetworks(addresses))]);
        for (const number of numbers) {
          const instance = planInstanceAddresses(addresses, number);
          await applyRules(planRulesOfInstance(addresses, instance, ports), instance.namespace);
        }
      }),
    forget: (owner) => void apps.delete(owner),
  };
}
