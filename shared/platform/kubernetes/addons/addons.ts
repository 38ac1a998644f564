import type { Addons, AddonType } from '#shared/platform/addons.ts';
import type { Cluster } from '../cluster/cluster.ts';
import type { AddonKind } from './addon-kind.ts';
import type { DatabaseSettings } from './database-plan.ts';
import { createDatabases } from './databases.ts';
import { createKvstores } from './kvstores.ts';

/** What the operator decides about add-ons. */
export interface AddonSettings {
  /** Of valkey 9 or later, with `valkey-server` and `valkey-cli` in the PATH. */
  kvstoreImage: string;
  database: DatabaseSettings;
}

/** Add-ons in the tenants' namespaces. */
export function createKubernetesAddons(cluster: Cluster, { kvstoreImage, database }: AddonSettings): Addons {
  const byType: Readonly<Record<AddonType, AddonKind>> = {
    kvstore: createKvstores(cluster, kvstoreImage),
    database: createDatabases(cluster, database),
  };
  return {
    findProblem: (type) => byType[type].findProblem(),
    ensureAddon: (spec) => byType[spec.type].ensure(spec),
    stopAddon: (appId, type) => byType[type].stop(appId),
    deleteAddon: (appId, type) => byType[type].delete(appId),
    readAddon: (appId, type) => byType[type].read(appId),
  };
}
