import { lockApp } from '#shared/core/apps/apps-store.ts';
import { supersededMessage } from '#shared/core/builds/build-creation.ts';
import { endAndReportBuild } from '#shared/core/builds/build-report.ts';
import { describeSource } from '#shared/core/builds/build-source.ts';
import { type BuildRow, lockBuild, readReleaseOfNewerBuild } from '#shared/core/builds/builds-store.ts';
import type { Context } from '#shared/core/context.ts';
import { readDeployOfRelease } from '#shared/core/releases/deploys-store.ts';
import { createRelease } from '#shared/core/releases/release-creation.ts';
import type { Db } from '#shared/database/db.ts';
import type { BuildOutcome } from '#shared/platform/builds.ts';

/**
 * Records a build that succeeded: its end, the release and the deploy's job commit together. The deploy moves the refs.
 * A build that a newer one has overtaken ends as superseded. Records nothing when another attempt has taken over or the build was ended meanwhile.
 */
export async function recordSuccess(
  context: Context,
  build: BuildRow,
  outcome: BuildOutcome & { status: 'succeeded' },
): Promise<void> {
  const { db } = context;
  await db.transaction().execute(async (trx) => {
    const app = await lockApp(trx, build.app_id);
    // Locked: an attempt that began between here and the end would find it running, and make a second release.
    const current = await lockBuild(trx, build.id);
    if (app === undefined || current?.attempt !== build.attempt || current.status !== 'running') return;
    // Nobody wants it any more, and it was too late to stop the building.
    if (current.cancel_requested || app.deleted_at !== null) {
      await endAndReportBuild(context, trx, build, { status: 'canceled', error: 'Canceled.' });
      return;
    }
    if (await isOvertaken(trx, build)) {
      await endAndReportBuild(context, trx, build, { status: 'canceled', error: supersededMessage });
      return;
    }
    const { releaseId } = await createRelease(context, trx, app, {
      kind: 'build',
      image: {
        image_url: outcome.imageUrl,
        processes: outcome.processes as Record<string, string>,
        release_command: outcome.releaseCommand ?? null,
        commit: build.commit,
      },
      description: `Deploy ${describeSource(build)}`,
      createdBy: build.created_by,
      buildId: build.id,
      refChanges: build.ref_changes,
    });
    const end = {
      status: 'succeeded' as const,
      image_url: outcome.imageUrl,
      processes: { ...outcome.processes },
      release_command: outcome.releaseCommand ?? null,
      release_id: releaseId,
    };
    await endAndReportBuild(context, trx, build, end);
  });
}

/**
 * Whether a newer build has its release already, so that the older source would take its place. A build that was interrupted
 * is taken up again behind those that came after it.
 */
async function isOvertaken(trx: Db, build: BuildRow): Promise<boolean> {
  const releaseId = await readReleaseOfNewerBuild(trx, build);
  const deploy = releaseId && (await readDeployOfRelease(trx, releaseId));
  return deploy !== undefined && deploy.status !== 'failed' && deploy.status !== 'aborted';
}
