import { createInProcessBuilds, type InProcessBuilds } from '#shared/platform/in-process-builds.ts';
import { createRunBuild, type RunBuildParts } from './run-build.ts';

/** As many as there were job slots when builds still ran in them. */
const buildsAtOnce = 8;

/**
 * Builds on this machine. Each is a child of this process in the sandbox: it ends with the process, and the next one says
 * that it is lost.
 */
export function createLocalBuilds(parts: RunBuildParts): InProcessBuilds {
  return createInProcessBuilds({ runBuild: createRunBuild(parts), atOnce: buildsAtOnce });
}
