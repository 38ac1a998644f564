import type { BuildPlan } from './build-plan.ts';

/** The plan of a source that runs as it is. */
export const emptyPlan: BuildPlan = {
  notes: ['Nothing to build'],
  steps: [],
  env: {},
  path: [],
  toolchain: [],
  cacheDirectories: [],
  runtimeEnv: {},
  defaultProcesses: async () => ({}),
  processHint: '',
};
