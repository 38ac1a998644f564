import type { AddonBinding, WorkloadSpec } from '#shared/platform/workloads.ts';

/** The environment of an app's processes, for drivers that have one map for it: an add-on's variable wins over the app's own. */
export function workloadEnvironment({ config, bindings }: Pick<WorkloadSpec, 'config' | 'bindings'>): Record<string, string> {
  return { ...config, ...bindingVariables(bindings) };
}

/** The variables of all bindings together. */
export function bindingVariables(bindings: readonly AddonBinding[]): Record<string, string> {
  return Object.assign({}, ...bindings.map(({ variables }) => variables)) as Record<string, string>;
}
