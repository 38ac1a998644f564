import type { AppRow } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import type { DeployRow } from '#shared/core/releases/deploys-store.ts';
import type { DeployStatus } from '#shared/core/releases/releases.ts';
import type { ReleaseRow } from '#shared/core/releases/releases-store.ts';
import type { BuildLogWriter } from '#shared/core/telemetry/build-log-writer.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';

/** One attempt at a deploy, and all it works with. */
export interface DeployRun {
  context: Context;
  app: AppRow;
  /** As claimed: its `attempt` is the token that fences off earlier attempts. */
  deploy: DeployRow;
  release: ReleaseRow;
  spec: WorkloadSpec;
  /** Where the person who waits for the deploy reads. */
  log: BuildLogWriter;
  /** The worker is asked to stop: the deploy goes on with the next one. */
  stopping: AbortSignal;
  /** The app was deleted. */
  deleted: AbortSignal;
}

/** What a deploy came to, and what the person who waits for it reads. */
export interface Verdict {
  status: Extract<DeployStatus, 'live' | 'failed' | 'aborted' | 'superseded'>;
  error: string | null;
  lines: readonly string[];
}

export const deletionCause = 'The app was deleted.';

/** Last lines about a release that did not go live. */
export function describeWhatServes(isFirst: boolean): string {
  return isFirst
    ? ' !     Nothing serves yet. Mend it and push again.'
    : ' !     The release before it serves on. `paas logs` shows what happened.';
}
