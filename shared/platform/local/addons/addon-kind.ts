import type { AppId } from '#shared/ids.ts';
import type { AddonCredentials, AddonFacts, AddonSpec } from '#shared/platform/addons.ts';

/** One type of add-on on this machine: the port's verbs, and what its servers go through with the platform. */
export interface AddonKind {
  findProblem(): Promise<string | undefined>;
  ensure(spec: AddonSpec): Promise<AddonCredentials>;
  stop(appId: AppId): Promise<boolean>;
  delete(appId: AppId): Promise<boolean>;
  read(appId: AppId): Promise<AddonFacts | undefined>;
  /** Finds again what an earlier control plane left, and starts what it had stopped. Once, before anything else is asked. */
  adopt(): Promise<void>;
  /** Ends all servers; data stays. */
  stopAll(): Promise<void>;
  /** Leaves all servers running. */
  detach(): Promise<void>;
}
