import { enqueueReport } from '#shared/core/apps/app-jobs.ts';
import { type BuildEnd, type BuildRow, endBuild } from '#shared/core/builds/builds-store.ts';
import { isRepository } from '#shared/core/builds/repository-source.ts';
import type { Context } from '#shared/core/context.ts';
import type { Db } from '#shared/database/db.ts';

type Reported = Pick<BuildRow, 'id' | 'app_id' | 'source'>;

/** Has the git host told how a build goes, if it is of a repository there. */
export async function reportBuild(context: Pick<Context, 'jobs'>, db: Db, { id, app_id, source }: Reported): Promise<void> {
  if (isRepository(source)) await enqueueReport(context, db, app_id, { buildId: id });
}

/** Ends a build, and has the git host told. False when another attempt has taken over, or it was over. */
export async function endAndReportBuild(
  context: Pick<Context, 'jobs' | 'clock'>,
  db: Db,
  build: BuildRow,
  end: BuildEnd,
): Promise<boolean> {
  const ended = await endBuild(db, build, end, context.clock.now());
  if (ended) await reportBuild(context, db, build);
  return ended;
}
