import type { AppId } from '#shared/ids.ts';
import type { AddonCredentials, AddonFacts, AddonSpec } from '#shared/platform/addons.ts';

/** The driver of one type of add-on on this machine: the verbs of the port, and the start and end of its servers. */
export interface AddonKind {
  /** Why no add-on of this type can be created here, for the user; undefined when it can. */
  findProblem(): Promise<string | undefined>;
  ensure(spec: AddonSpec): Promise<AddonCredentials>;
  /** Data stays. False when nothing was running. */
  stop(appId: AppId): Promise<boolean>;
  /** False when there was none. */
  delete(appId: AppId): Promise<boolean>;
  /** Undefined when there is none. */
  read(appId: AppId): Promise<AddonFacts | undefined>;
  /** Finds the servers that an earlier control plane left running, and starts the others. To be called once, before all else. */
  adopt(): Promise<void>;
  /** Ends all servers; data stays. */
  stopAll(): Promise<void>;
  /** Stops supervising, and leaves all servers running. */
  detach(): Promise<void>;
}
