/** Names of the objects of a build. */
import type { AppId, BuildId } from '#shared/ids.ts';
import { buildNamespace } from '#shared/names.ts';
import type { ObjectReference } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';
import { appLabels } from '../names.ts';

/** Of the PipelineRun, and of the Secret with its two tokens: a second start finds it. */
export function buildRunName(buildId: BuildId): string {
  return `build-${buildId}`;
}

/** Of the Secret with the app's variables, one key each. */
export function buildVariablesName(buildId: BuildId): string {
  return `${buildRunName(buildId)}-variables`;
}

/** Of a build's PipelineRun; Tekton puts them on its TaskRuns and their pods, too. */
export function buildLabels(appId: AppId, buildId: BuildId): Record<string, string> {
  return { ...appLabels(appId), ...selectBuild(buildId) };
}

/** By which all objects of a build are found. */
export function selectBuild(buildId: BuildId): Record<string, string> {
  return { 'build-id': buildId };
}

/** The PipelineRun. */
export function buildRunOf(buildId: BuildId): ObjectReference {
  return { kind: kinds.pipelineRun, name: buildRunName(buildId), namespace: buildNamespace };
}

/** The task that builds; the other one only reports the end. */
export const buildTask = 'build';

/** Annotations of a PipelineRun. */
export const annotations = {
  /** The source's Procfile as JSON: `{processes, releaseCommand?}`. */
  procfile: 'paas/procfile',
  /** Why the build was refused before anything ran. */
  refused: 'paas/refused',
  /** Seconds that the build may take. */
  timeout: 'paas/timeout-seconds',
} as const;
