import type { AddonBinding, WorkloadSpec } from '#shared/platform/workloads.ts';

/** The environment of an app's processes, for drivers that have one map for it: an add-on's variable wins over the app's own. */
export function workloadEnvironment({ config, bindings }: Pick<WorkloadSpec, 'config' | 'bindings'>): Record<string, string> {
  const merge = (all: readonly AddonBinding['variables'][]): Record<string, string> =>
    Object.assign({}, ...all) as Record<string, string>;
  return { ...configWithClientVariables({ config, bindings }), ...merge(bindings.map(({ variables }) => variables)) };
}

/** The app's own variables, and below them those that clients of its add-ons read by themselves. */
export function configWithClientVariables({
  config,
  bindings,
}: Pick<WorkloadSpec, 'config' | 'bindings'>): Record<string, string> {
  return Object.assign({}, ...bindings.map(({ clientVariables }) => clientVariables), config) as Record<string, string>;
}
