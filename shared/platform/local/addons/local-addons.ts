import { join } from 'node:path';
import type { Clock } from '#shared/clock.ts';
import type { AppId } from '#shared/ids.ts';
import type { Log } from '#shared/log.ts';
import type { Addons, AddonType } from '#shared/platform/addons.ts';
import type { Sandbox } from '#shared/platform/local/sandbox/open-sandbox.ts';
import type { OpenPorts } from '../network/network-plan.ts';
import type { Networks } from '../network/networks.ts';
import type { AddonKind } from './addon-kind.ts';
import { createKvstores } from './kvstores.ts';
import { createTenantDatabases } from './tenant-databases.ts';

export interface LocalAddonsOptions {
  /** Absolute; holds `addons/`. */
  dataDir: string;
  sandbox: Sandbox;
  /** Undefined: apps share the host's network. */
  networks: Pick<Networks, 'openPorts'> | undefined;
  /** The operator's PATH. */
  path: string;
  clock: Clock;
  log: Log;
}

export interface LocalAddons extends Addons, Pick<AddonKind, 'adopt' | 'stopAll' | 'detach'> {}

/** Add-ons as real servers on this machine. */
export function createLocalAddons({ dataDir, sandbox, networks, path, clock, log }: LocalAddonsOptions): LocalAddons {
  const kinds: Readonly<Record<AddonType, AddonKind>> = {
    kvstore: createKvstores({ directory: join(dataDir, 'addons', 'kvstore'), sandbox, path, clock, log }),
    database: createTenantDatabases({
      directory: join(dataDir, 'addons', 'postgres'),
      authorityDirectory: join(dataDir, 'gateway'),
      clock,
      log,
    }),
  };
  const all = Object.values(kinds);
  const each = async (work: (kind: AddonKind) => Promise<void>): Promise<void> => {
    await Promise.all(all.map(work));
  };
  const close = async (appId: AppId, type: AddonType, closing: Promise<boolean>): Promise<boolean> => {
    const existed = await closing;
    if (existed) await networks?.openPorts(appId, openPort(type, []));
    return existed;
  };
  return {
    findProblem: (type) => kinds[type].findProblem(),
    async ensureAddon(spec) {
      const credentials = await kinds[spec.type].ensure(spec);
      await networks?.openPorts(spec.appId, openPort(spec.type, [credentials.port]));
      return credentials;
    },
    stopAddon: (appId, type) => close(appId, type, kinds[type].stop(appId)),
    deleteAddon: (appId, type) => close(appId, type, kinds[type].delete(appId)),
    readAddon: (appId, type) => kinds[type].read(appId),
    adopt: () => each((kind) => kind.adopt()),
    stopAll: () => each((kind) => kind.stopAll()),
    detach: () => each((kind) => kind.detach()),
  };
}

/** Key-value servers run in their app's network; the databases of all apps are on the host. */
function openPort(type: AddonType, ports: readonly number[]): Partial<OpenPorts> {
  return type === 'database' ? { toHost: ports } : { fromHost: ports };
}
