import { AppError } from '#shared/errors.ts';
import type { AppId } from '#shared/ids.ts';
import type { AddonCredentials, AddonSpec, Addons, AddonType } from '#shared/platform/addons.ts';

/** Add-ons that a test can refuse, slow down and look into. */
export interface FakeAddons extends Addons {
  /** From now on the type is not available, for this reason; with undefined it is. */
  refuse(type: AddonType, problem: string | undefined): void;
  /** At most this many servers of the add-on answer from now on, as while they start; with undefined all of them. */
  limitReady(appId: AppId, type: AddonType, ready: number | undefined): void;
  /** The spec of the last `ensureAddon`. */
  readSpec(appId: AppId, type: AddonType): AddonSpec | undefined;
  /** The data behind an address. @throws Error for a wrong address or password */
  open(uri: string): Map<string, string>;
}

interface Store {
  spec: AddonSpec;
  credentials: AddonCredentials;
  stopped: boolean;
  readyLimit: number | undefined;
  readonly data: Map<string, string>;
}

/** Add-ons without servers: each is a map, which the address opens. */
export function createFakeAddons(): FakeAddons {
  const stores = new Map<string, Store>();
  const problems = new Map<AddonType, string>();
  const keyOf = (appId: AppId, type: AddonType) => `${type} ${appId}`;
  let lastPort = 10_000;

  return {
    findProblem: async (type) => problems.get(type),

    async ensureAddon(spec) {
      const problem = problems.get(spec.type);
      if (problem !== undefined) throw new AppError('internal', problem);
      const key = keyOf(spec.appId, spec.type);
      const before = stores.get(key);
      const port = before?.credentials.port ?? (lastPort += 1);
      const { password } = spec;
      const scheme = spec.type === 'kvstore' ? 'redis' : 'postgres';
      const credentials = { uri: `${scheme}://:${password}@127.0.0.1:${port}`, host: '127.0.0.1', port, password };
      const beforeState = { data: before?.data ?? new Map<string, string>(), readyLimit: before?.readyLimit };
      stores.set(key, { ...beforeState, spec, credentials, stopped: false });
      return credentials;
    },

    async stopAddon(appId, type) {
      const store = stores.get(keyOf(appId, type));
      if (store === undefined || store.stopped) return false;
      store.stopped = true;
      return true;
    },

    deleteAddon: async (appId, type) => stores.delete(keyOf(appId, type)),

    async readAddon(appId, type) {
      const store = stores.get(keyOf(appId, type));
      if (store === undefined) return undefined;
      const desired = store.stopped ? 0 : store.spec.replicas;
      return { ready: Math.min(desired, store.readyLimit ?? desired), desired };
    },

    refuse(type, problem) {
      if (problem === undefined) problems.delete(type);
      else problems.set(type, problem);
    },

    limitReady(appId, type, ready) {
      const store = stores.get(keyOf(appId, type));
      if (store !== undefined) store.readyLimit = ready;
    },

    readSpec: (appId, type) => stores.get(keyOf(appId, type))?.spec,

    open(uri) {
      const store = [...stores.values()].find(({ credentials, stopped }) => credentials.uri === uri && !stopped);
      if (store === undefined) throw new Error('Nothing answers at this address, or the password is wrong.');
      return store.data;
    },
  };
}
