import type { Caller } from '#shared/core/accounts/principals.ts';
import type { AppId } from '#shared/ids.ts';
import type { AddonCredentials, AddonType } from '#shared/platform/addons.ts';

export type AddonPlan = 'free' | 'standard' | 'pro';
/** SPEC.md §3: 'creating' when it was accepted, then what follows from the servers that are ready. */
export type AddonStatus = 'creating' | 'Ready' | 'Creating' | 'Failed';

export interface Addon {
  appId: AppId;
  type: AddonType;
  plan: AddonPlan;
  status: AddonStatus;
  /** The variable by which the app gets its address. */
  configVar: string;
  createdAt: Date;
  updatedAt: Date;
}

export interface AppAddons {
  listAddons(caller: Caller, app: string): Promise<readonly Addon[]>;
  /**
   * Adds one, or brings the one there is to this plan; an unknown plan counts as `free`. Again converges what has
   * strayed. `conflict` when the app has set the variable by hand, the add-on is being removed, or the machine has no such server.
   */
  createAddon(
    caller: Caller,
    app: string,
    request: { type: AddonType; plan?: string },
  ): Promise<{ addon: Addon; created: boolean }>;
  /** A new password, and a release that brings it to the app. */
  rotatePassword(caller: Caller, app: string, type: string): Promise<Addon>;
  /** `conflict` until its servers were told. */
  readCredentials(caller: Caller, app: string, type: string): Promise<AddonCredentials>;
  /** Takes the variable from the app by a release; after that the servers and their data go. */
  deleteAddon(caller: Caller, app: string, type: string): Promise<Addon>;
}
