import type { BuildPlan } from './build-plan.ts';

/**
 * What all steps of an app see, and the app at run time, where several languages build it. The last plan is that of the language which starts
 * the app: its values come before those of the others.
 */
export type CombinedPlan = Pick<BuildPlan, 'env' | 'path' | 'toolchain' | 'cacheDirectories' | 'runtimeEnv'>;

/** Combines the plans of an app that several builders build; the last one runs it. */
export function combinePlans(plans: readonly BuildPlan[]): CombinedPlan {
  return {
    env: Object.assign({}, ...plans.map(({ env }) => env)) as Readonly<Record<string, string>>,
    runtimeEnv: Object.assign({}, ...plans.map(({ runtimeEnv }) => runtimeEnv)) as Readonly<Record<string, string>>,
    path: [...new Set(plans.toReversed().flatMap(({ path }) => path))],
    toolchain: plans.flatMap(({ toolchain }) => toolchain),
    cacheDirectories: [...new Set(plans.flatMap(({ cacheDirectories }) => cacheDirectories))],
  };
}

/** With tools that an app asks for beside its languages, whose own programs come first. */
export function addTools(plan: CombinedPlan, tools: Pick<CombinedPlan, 'path' | 'toolchain'>): CombinedPlan {
  return { ...plan, path: [...new Set([...plan.path, ...tools.path])], toolchain: [...plan.toolchain, ...tools.toolchain] };
}
