import type { AppId } from '#shared/ids.ts';
import type { AddonCredentials, AddonFacts, AddonSpec } from '#shared/platform/addons.ts';

/** The verbs of `Addons` for one type of add-on. */
export interface AddonKind {
  findProblem(): Promise<string | undefined>;
  ensure(spec: AddonSpec): Promise<AddonCredentials>;
  stop(appId: AppId): Promise<boolean>;
  delete(appId: AppId): Promise<boolean>;
  read(appId: AppId): Promise<AddonFacts | undefined>;
}
