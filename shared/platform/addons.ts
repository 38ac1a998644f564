/** Port: managed servers that an app uses, the key-value store and the database. core/addons decides what the facts mean. */
import type { AppId, TenantId } from '#shared/ids.ts';

/** SPEC.md §2: `kvstore` is the key-value store. */
export const addonTypes = ['kvstore', 'database'] as const;
/** One of `addonTypes`. */
export type AddonType = (typeof addonTypes)[number];

/** What an add-on shall be. */
export interface AddonSpec {
  appId: AppId;
  tenantId: TenantId;
  type: AddonType;
  /** Standalone servers; the address leads to one of them. */
  replicas: number;
  /** Of each server. The key-value store fills three quarters of it with data and refuses more. */
  memoryBytes: number;
  /** Connections that clients may have at the same time. */
  connections: number;
  /** The app's own, `^[A-Za-z0-9]{16,}$`. Secret. */
  password: string;
}

/** How the app connects (SPEC.md §2, the auth secret). All of it is secret. */
export interface AddonCredentials {
  /** The whole address with the password. Copied from here, never built again. */
  uri: string;
  host: string;
  port: number;
  password: string;
}

/** How many servers of an add-on run. */
export interface AddonFacts {
  /** Servers that answer. */
  ready: number;
  /** Servers that shall run; 0 for an add-on that is stopped. */
  desired: number;
}

/** The verbs of add-ons. */
export interface Addons {
  /**
   * Why the type is not available here, and the command that installs it; undefined when it is available.
   *
   * Kubernetes: for 'database', that the operator CloudNativePG is missing.
   */
  findProblem(type: AddonType): Promise<string | undefined>;
  /**
   * Makes the add-on match `spec`, also one that was stopped; its data is kept. Resolves as soon as the address is known;
   * `readAddon` reports when its servers answer. The address stays the same where that is possible.
   *
   * Kubernetes: the key-value store is a Deployment, a Service and the secret `<name>-auth`; the database a CloudNativePG
   * Cluster, whose secret `<cluster>-app` has the address. An existing key-value store is patched in its replicas only: any
   * other change would replace its pods and lose the data.
   * @throws AppError 'internal' with what `findProblem` reports
   */
  ensureAddon(spec: AddonSpec): Promise<AddonCredentials>;
  /**
   * Ends all connections and accepts no more; the data is kept for `ensureAddon`. False when there is no add-on or it is
   * stopped already.
   *
   * Kubernetes: a Cluster is hibernated; a key-value store has no volume, so its network policy is removed instead.
   */
  stopAddon(appId: AppId, type: AddonType): Promise<boolean>;
  /**
   * Deletes the add-on and its data. False when there was none.
   *
   * Kubernetes: deletes its objects and waits for none of them.
   */
  deleteAddon(appId: AppId, type: AddonType): Promise<boolean>;
  /**
   * Undefined when there is none.
   *
   * Kubernetes: ready and desired replicas from the status of the Deployment or Cluster.
   */
  readAddon(appId: AppId, type: AddonType): Promise<AddonFacts | undefined>;
}
