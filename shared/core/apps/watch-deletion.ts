import { readAppById } from '#shared/core/apps/apps-store.ts';
import { deletionKey } from '#shared/core/apps/deleted-apps.ts';
import type { Context } from '#shared/core/context.ts';
import { watchForEnd } from '#shared/core/watch.ts';
import type { AppId } from '#shared/ids.ts';

const pollMilliseconds = 1000;

/**
 * A signal that aborts when the app is deleted. Call `stop` when nothing depends on it any more.
 * @param stopping ends the watch
 */
export function watchForDeletion(context: Context, appId: AppId, stopping: AbortSignal): { signal: AbortSignal; stop(): void } {
  const findReason = async (): Promise<Error | undefined> => {
    const app = await readAppById(context.db, appId);
    return app?.deleted_at === null ? undefined : new Error('The app was deleted.');
  };
  return watchForEnd(context, { key: deletionKey(appId), milliseconds: pollMilliseconds, findReason }, stopping);
}
