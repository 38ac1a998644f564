import { join } from 'node:path';
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/log.ts';
import type { Addons, AddonType } from '#shared/platform/addons.ts';
import type { Sandbox } from '#shared/platform/local/sandbox/open-sandbox.ts';
import type { AddonKind } from './addon-kind.ts';
import { createKvstores } from './kvstores.ts';
import { createTenantDatabases } from './tenant-databases.ts';

export interface LocalAddonsOptions {
  /** Absolute; holds `addons/`. */
  dataDir: string;
  sandbox: Sandbox;
  /** The operator's PATH. */
  path: string;
  clock: Clock;
  log: Log;
}

export interface LocalAddons extends Addons, Pick<AddonKind, 'adopt' | 'stopAll' | 'detach'> {}

/** Real servers on this machine. */
export function createLocalAddons({ dataDir, sandbox, path, clock, log }: LocalAddonsOptions): LocalAddons {
  const kinds: Readonly<Record<AddonType, AddonKind>> = {
    kvstore: createKvstores({ directory: join(dataDir, 'addons', 'kvstore'), sandbox, path, clock, log }),
    database: createTenantDatabases({ directory: join(dataDir, 'addons', 'postgres'), clock, log }),
  };
  const all = Object.values(kinds);
  const each = async (work: (kind: AddonKind) => Promise<void>): Promise<void> => {
    await Promise.all(all.map(work));
  };
  return {
    findProblem: (type) => kinds[type].findProblem(),
    ensureAddon: (spec) => kinds[spec.type].ensure(spec),
    stopAddon: (appId, type) => kinds[type].stop(appId),
    deleteAddon: (appId, type) => kinds[type].delete(appId),
    readAddon: (appId, type) => kinds[type].read(appId),
    adopt: () => each((kind) => kind.adopt()),
    stopAll: () => each((kind) => kind.stopAll()),
    detach: () => each((kind) => kind.detach()),
  };
}
