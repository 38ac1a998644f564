import { lockApp, readAppById } from '#shared/core/apps/apps-store.ts';
import { afterPurges } from '#shared/core/apps/previews.ts';
import { withCaches } from '#shared/core/builds/build-creation.ts';
import type { Context } from '#shared/core/context.ts';
import { buildBranch, listBuiltApps, lookAtSource } from '#shared/core/webhooks/source-look.ts';
import { scheduleLook } from '#shared/core/webhooks/source-look-job.ts';
import { deleteHints, type HintRow, hasHint, listHints } from '#shared/core/webhooks/source-looks-store.ts';
import type { DeliveryResult } from '#shared/core/webhooks/webhooks.ts';
import { AppError } from '#shared/errors.ts';
import type { AppId } from '#shared/ids.ts';
import { createKeyedMutex } from '#shared/keyed-mutex.ts';

/** A git host waits for the answer to its delivery, 10 s as a rule. */
const askMilliseconds = 3000;

interface HintName {
  appId: AppId;
  id: HintRow['id'];
  branch: string;
}

/**
 * Follows hints at once: asks the git host and answers what happened to the hint's branch. When the host gives no answer in
 * time, a build of the branch is started that fetches whatever the branch has by then. Of hints about one app that come
 * together, one question answers all.
 */
export function createSourceFollower(context: Context): (hint: HintName) => Promise<DeliveryResult> {
  const { db, log } = context;
  const mutex = createKeyedMutex<AppId>();
  return (hint) =>
    mutex.run(hint.appId, async () => {
      if (!(await hasHint(db, hint.id)))
        return { outcome: 'replayed', message: `${hint.branch} was looked at for another delivery just now.` };
      try {
        const look = await lookAtSource(context, hint.appId, AbortSignal.timeout(askMilliseconds));
        if (look === undefined) return { outcome: 'ignored', message: 'The app was deleted.' };
        await scheduleLook(context, hint.appId, look);
        return look.results.get(hint.branch) ?? { outcome: 'accepted', message: 'The git host is asked again soon.' };
      } catch (error) {
        if (!(error instanceof AppError) && !(error instanceof DOMException)) throw error;
        log.info('A git host could not be asked during its delivery.', { appId: hint.appId, error });
        return startUnasked(context, hint);
      }
    });
}

async function startUnasked(context: Context, { appId, id, branch }: HintName): Promise<DeliveryResult> {
  const { db } = context;
  const later: DeliveryResult = {
    outcome: 'accepted',
    message: 'The git host does not answer the platform now. It is asked again until it does.',
  };
  const app = await readAppById(db, appId);
  if (app === undefined) return later;
  return afterPurges(context, async () =>
    withCaches(context, await listBuiltApps(db, app, [branch]), (caches) =>
      db.transaction().execute(async (trx) => {
        const locked = await lockApp(trx, appId);
        const hint = (await listHints(trx, appId)).find((each) => each.id === id);
        // A deletion is not believed without the git host.
        if (hint === undefined || hint.commit === null || hint.skips_build || locked?.git_url == null) return later;
        const move = { branch, commit: null, hinted: true };
        const result = await buildBranch(trx, { context, app: locked, url: locked.git_url, caches }, move);
        await deleteHints(trx, [id]);
        return result ?? later;
      }),
    ),
  );
}
