import type { AppId } from '#shared/ids.ts';
import type { AppEnvironments } from '#shared/platform/app-environments.ts';
import type { Networks } from './network/networks.ts';

/** Dependencies of {@link createLocalAppEnvironments}. */
export interface LocalAppEnvironmentsOptions {
  sandbox: { ensureUid(appId: AppId): Promise<number> };
  /** Undefined: apps share the host's network. */
  networks: Pick<Networks, 'ensureNetwork' | 'deleteNetwork'> | undefined;
}

/** On one machine an app needs a network and a uid of its own. The uid is never reused: files may outlive the app. */
export function createLocalAppEnvironments({ sandbox, networks }: LocalAppEnvironmentsOptions): AppEnvironments {
  return {
    async ensureApp({ appId }) {
      await sandbox.ensureUid(appId);
      await networks?.ensureNetwork(appId);
    },
    deleteApp: async (appId) => (await networks?.deleteNetwork(appId)) ?? false,
  };
}
