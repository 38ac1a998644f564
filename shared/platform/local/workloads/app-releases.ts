import type { WorkloadSpec } from '#shared/platform/workloads.ts';

/** The releases of an app that run: the one that is live, and the one that is being rolled out. */
export interface AppReleases {
  live?: WorkloadSpec | undefined;
  candidate?: WorkloadSpec | undefined;
}

/** A control plane of an earlier version wrote an app's whole environment as `env`. */
type StoredSpec = WorkloadSpec & { env?: Readonly<Record<string, string>> };

/** @param json what JSON.stringify made of the releases, in this version or an earlier one */
export function parseAppReleases(json: string): AppReleases {
  const { live, candidate } = JSON.parse(json) as { live?: StoredSpec; candidate?: StoredSpec };
  return { live: live && upgradeSpec(live), candidate: candidate && upgradeSpec(candidate) };
}

function upgradeSpec({ env, ...spec }: StoredSpec): WorkloadSpec {
  return env === undefined ? spec : { ...spec, config: env, bindings: [] };
}
