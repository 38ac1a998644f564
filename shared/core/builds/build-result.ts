import { lockApp } from '#shared/core/apps/apps-store.ts';
import { describeSource } from '#shared/core/builds/build-source.ts';
import { type BuildRow, endBuild, lockBuild } from '#shared/core/builds/builds-store.ts';
import type { Context } from '#shared/core/context.ts';
import { createRelease } from '#shared/core/releases/release-creation.ts';
import { moveRefs } from '#shared/core/repositories/ref-moves.ts';
import type { BuildOutcome } from '#shared/platform/builds.ts';

/**
 * Records a build that succeeded: its end, the refs it moves, the release and the deploy's job commit together. Records
 * nothing when another attempt has taken over or the build was ended meanwhile.
 * @returns false when a ref has moved elsewhere meanwhile: then nothing is recorded yet, and the build has failed
 */
export async function recordSuccess(
  context: Context,
  build: BuildRow,
  outcome: BuildOutcome & { status: 'succeeded' },
): Promise<boolean> {
  const { db, clock } = context;
  return db.transaction().execute(async (trx) => {
    const app = await lockApp(trx, build.app_id);
    // Locked: an attempt that began between here and the end would find it running, and make a second release.
    const current = await lockBuild(trx, build.id);
    if (app === undefined || current?.attempt !== build.attempt || current.status !== 'running') return true;
    // Nobody wants it any more, and it was too late to stop the building.
    if (current.cancel_requested || app.deleted_at !== null)
      return endBuild(trx, build, { status: 'canceled', error: 'Canceled.' }, clock.now());
    if (!(await moveRefs(context, trx, app.repository_id, build.ref_changes))) return false;
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
    });
    const end = {
      status: 'succeeded' as const,
      image_url: outcome.imageUrl,
      processes: { ...outcome.processes },
      release_command: outcome.releaseCommand ?? null,
      release_id: releaseId,
    };
    return endBuild(trx, build, end, clock.now());
  });
}
