import { enqueueLook } from '#shared/core/apps/app-jobs.ts';
import type { Context } from '#shared/core/context.ts';
import { type Look, lookAtSource } from '#shared/core/webhooks/source-look.ts';
import { addSeconds } from '#shared/durations.ts';
import { AppError } from '#shared/errors.ts';
import type { AppId } from '#shared/ids.ts';

/** Between two looks at a repository that sends deliveries: so long a lost delivery is noticed late. */
const lookSeconds = 600;
/** Until the next look when the git host does not show yet what a delivery named. */
const soonSeconds = 20;
/** After a failure: 15 s, 1 min, 4 min and so on, at most `lookSeconds`. */
const firstRetrySeconds = 15;

/** Has the app's source looked at again after a look. */
export async function scheduleLook(context: Context, appId: AppId, { isBehind }: Look): Promise<void> {
  const runAt = addSeconds(context.clock.now(), isBehind ? soonSeconds : lookSeconds);
  await enqueueLook(context, context.db, appId, { runAt, failures: 0 });
}

/** Looks at the app's source, and again after some time, for as long as the app follows one. */
export async function runLookJob(context: Context, appId: AppId, failures: number, signal: AbortSignal): Promise<void> {
  const { db, clock, log } = context;
  try {
    const look = await lookAtSource(context, appId, signal);
    if (look !== undefined) await scheduleLook(context, appId, look);
  } catch (error) {
    if (signal.aborted || !(error instanceof AppError) || error.code === 'internal') throw error;
    log.info('A git host could not be asked.', { appId, error });
    const seconds = Math.min(firstRetrySeconds * 4 ** failures, lookSeconds);
    await enqueueLook(context, db, appId, { runAt: addSeconds(clock.now(), seconds), failures: failures + 1 });
  }
}
