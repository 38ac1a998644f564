import type { AddonPlan, AddonStatus } from '#shared/core/addons/addons.ts';
import type { AddonCredentials, AddonFacts, AddonSpec, AddonType } from '#shared/platform/addons.ts';

const mebibyte = 1024 * 1024;

type PlanSize = Pick<AddonSpec, 'replicas' | 'memoryBytes' | 'connections'>;

/** Those of SPEC.md §3 for the key-value store. All databases share one server, and their plans differ in connections. */
const sizes: Readonly<Record<AddonType, Readonly<Record<AddonPlan, PlanSize>>>> = {
  kvstore: {
    free: { replicas: 1, memoryBytes: 64 * mebibyte, connections: 50 },
    standard: { replicas: 1, memoryBytes: 256 * mebibyte, connections: 500 },
    pro: { replicas: 3, memoryBytes: 1024 * mebibyte, connections: 2000 },
  },
  database: {
    free: { replicas: 1, memoryBytes: 64 * mebibyte, connections: 10 },
    standard: { replicas: 1, memoryBytes: 64 * mebibyte, connections: 20 },
    pro: { replicas: 1, memoryBytes: 64 * mebibyte, connections: 60 },
  },
};

/** An unknown plan is `free`, without an error (SPEC.md §3). */
export function toPlan(name: string): AddonPlan {
  return name === 'standard' || name === 'pro' ? name : 'free';
}

/** What the servers of a plan are. */
export function planSize(type: AddonType, plan: AddonPlan): PlanSize {
  return sizes[type][plan];
}

/** As SPEC.md §3 derives it. Without facts there are no servers yet. */
export function addonStatus(facts: AddonFacts | undefined): Exclude<AddonStatus, 'creating' | 'deleting'> {
  if (facts === undefined || facts.ready === 0) return 'Creating';
  return facts.ready === facts.desired ? 'Ready' : 'Failed';
}

const variables: Readonly<Record<AddonType, string>> = { kvstore: 'KVSTORE_URL', database: 'DATABASE_URL' };

/** The add-on's address under the names that its usual clients read by themselves: redis-cli's and libraries', libpq's. */
export function clientVariables(type: AddonType, { uri, host, port, password }: AddonCredentials): Record<string, string> {
  if (type === 'kvstore') return { REDIS_URL: uri };
  const { username, pathname } = new URL(uri);
  return {
    PGHOST: host,
    PGPORT: String(port),
    PGUSER: decodeURIComponent(username),
    PGPASSWORD: password,
    PGDATABASE: decodeURIComponent(pathname.slice(1)),
  };
}

/** The variable by which an app gets the add-on's address. */
export function addonVariable(type: AddonType): string {
  return variables[type];
}
