/**
 * The port of add-ons: servers that an app uses and does not bring along. It reports facts; `shared/core/addons/addons-service.ts`
 * decides what they mean.
 */
import type { AppId, TenantId } from '#shared/ids.ts';

export const addonTypes = ['kvstore', 'database'] as const;
export type AddonType = (typeof addonTypes)[number];

export interface AddonSpec {
  appId: AppId;
  tenantId: TenantId;
  type: AddonType;
  /** Servers, each for itself; the address leads to one of them. */
  replicas: number;
  /** Of each server; the key-value store fills three quarters of it with data and refuses more. */
  memoryBytes: number;
  /** At once. */
  connections: number;
  /** Of the app, `^[A-Za-z0-9]{16,}$`. Secret. */
  password: string;
}

/** SPEC.md §2, the auth secret: how the app gets in. All of it secret. */
export interface AddonCredentials {
  /** Whole, with the password; copied from here and never built again. */
  uri: string;
  host: string;
  port: number;
  password: string;
}

export interface AddonFacts {
  /** Servers that answer. */
  ready: number;
  /** Servers that shall run; 0 for one that is stopped. */
  desired: number;
}

export interface Addons {
  /** Why the type cannot be had here, and the command that mends it; undefined when it can. */
  findProblem(type: AddonType): Promise<string | undefined>;
  /**
   * Brings the add-on to `spec`, also one that was stopped; its data stays. Resolves as soon as the address is known;
   * `readAddon` says when it answers. The address stays the same wherever that can be had.
   * @throws AppError 'internal' with what `findProblem` says
   */
  ensureAddon(spec: AddonSpec): Promise<AddonCredentials>;
  /** Nobody gets in any more; its data stays for `ensureAddon`. False when there was nothing or it was stopped. */
  stopAddon(appId: AppId, type: AddonType): Promise<boolean>;
  /** Ends it and deletes its data. False when there was nothing. */
  deleteAddon(appId: AppId, type: AddonType): Promise<boolean>;
  /** Undefined when there is none. */
  readAddon(appId: AppId, type: AddonType): Promise<AddonFacts | undefined>;
}
