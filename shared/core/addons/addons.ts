import type { Caller } from '#shared/core/accounts/principals.ts';
import type { AppId } from '#shared/ids.ts';
import type { AddonCredentials, AddonType } from '#shared/platform/addons.ts';

/** SPEC.md §3. */
export type AddonPlan = 'free' | 'standard' | 'pro';
/**
 * SPEC.md §3: 'creating' when it was accepted, then what follows from the servers that are ready. 'deleting' once it was deleted,
 * until its servers are gone.
 */
export type AddonStatus = 'creating' | 'Ready' | 'Creating' | 'Failed' | 'deleting';

/** An add-on of an app (SPEC.md §2). */
export interface Addon {
  appId: AppId;
  type: AddonType;
  plan: AddonPlan;
  status: AddonStatus;
  /** The variable by which the app gets the address. */
  configVar: string;
  createdAt: Date;
  updatedAt: Date;
}

/** The add-ons of apps. */
export interface AppAddons {
  listAddons(caller: Caller, app: string): Promise<readonly Addon[]>;
  /**
   * Creates the add-on, or changes the plan of the existing one; an unknown plan counts as `free`. Repeating it makes the
   * servers match the record again. `conflict` when the app sets the variable itself, the add-on is being removed, or the
   * platform has no such server.
   */
  createAddon(
    caller: Caller,
    app: string,
    request: { type: AddonType; plan?: string },
  ): Promise<{ addon: Addon; created: boolean }>;
  /** Sets a new password, which the app gets by a new release. */
  rotatePassword(caller: Caller, app: string, type: string): Promise<Addon>;
  /** `conflict` until its servers have been created. */
  readCredentials(caller: Caller, app: string, type: string): Promise<AddonCredentials>;
  /** Removes the variable by a new release, then deletes the servers and their data. */
  deleteAddon(caller: Caller, app: string, type: string): Promise<Addon>;
}
