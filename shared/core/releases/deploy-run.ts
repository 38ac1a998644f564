import type { AppRow } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import type { DeployRow } from '#shared/core/releases/deploys-store.ts';
import type { DeployFailure, DeployStatus } from '#shared/core/releases/releases.ts';
import type { ReleaseRow } from '#shared/core/releases/releases-store.ts';
import { canMoveRefs, movedMessage } from '#shared/core/repositories/ref-moves.ts';
import type { BuildLogWriter } from '#shared/core/telemetry/build-log-writer.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';

/** One attempt at a deploy, and what it works with. */
export interface DeployRun {
  context: Context;
  app: AppRow;
  /** As it was claimed. Its `attempt` is the token that fences off earlier attempts. */
  deploy: DeployRow;
  release: ReleaseRow;
  spec: WorkloadSpec;
  /** What the person who waits for the deploy reads. */
  log: BuildLogWriter;
  /** Aborts when the worker stops: another worker continues the deploy. */
  stopping: AbortSignal;
  /** Aborts when the app is deleted. */
  deleted: AbortSignal;
}

/** How a deploy ended, and the last lines for the person who waits for it. */
export interface Verdict {
  status: Extract<DeployStatus, 'live' | 'failed' | 'aborted' | 'superseded'>;
  error: string | null;
  failure: DeployFailure | null;
  lines: readonly string[];
}

/** Whether a ref of the push that the release is built from has moved to where it would lose commits. */
export async function hasMovedAway({
  context,
  app,
  deploy,
  release,
}: Pick<DeployRun, 'context' | 'app' | 'deploy' | 'release'>): Promise<boolean> {
  // A change of config goes live all the same: it moves the refs of the build it is based on where that is possible.
  return release.kind === 'build' && !(await canMoveRefs(context, app.repository_id, deploy.ref_changes));
}

/** Nothing is rolled out since a ref of the push has moved. */
export const movedAway: Verdict = {
  status: 'superseded',
  error: movedMessage,
  failure: 'moved',
  lines: [` !     ${movedMessage}`],
};

/** `error` of deploys that end because of it. */
export const deletionCause = 'The app was deleted.';

/** The last line about a release that did not go live. */
export function describeWhatServes(isFirst: boolean): string {
  return isFirst
    ? ' !     Nothing is live yet. Fix the app and push again.'
    : ' !     The previous release keeps serving. `paas logs` shows what happened.';
}
