import { type AppRow, lockApp } from '#shared/core/apps/apps-store.ts';
import { checkBranchName } from '#shared/core/apps/branch-name.ts';
import { ensurePreview, removePreviews } from '#shared/core/apps/previews.ts';
import { createBuild } from '#shared/core/builds/build-creation.ts';
import type { Context } from '#shared/core/context.ts';
import { type PushEvent, readEvent } from '#shared/core/webhooks/webhook-event.ts';
import { appWebhookSecret } from '#shared/core/webhooks/webhook-secret.ts';
import { judgeHeaders, type SignedDelivery, verifyDelivery } from '#shared/core/webhooks/webhook-signature.ts';
import type { Delivery, DeliveryResult, Webhooks } from '#shared/core/webhooks/webhooks.ts';
import type { Db } from '#shared/database/schema.ts';
import { AppError } from '#shared/errors.ts';
import { type AppId, isUuid, type ObjectId } from '#shared/ids.ts';

const branchPrefix = 'refs/heads/';
/** Each branch of a git host is a delivery of its own: one that mirrors hundreds must not start hundreds of environments. */
const mostPreviews = 10;
/** Long after any git host has given up on delivering. */
const deliveryDays = 90;

export function createWebhooks(context: Context): Webhooks {
  const platformSecret = (): string => {
    const { webhookSecret } = context.settings;
    if (webhookSecret !== undefined) return webhookSecret;
    throw new AppError(
      'forbidden',
      'Webhooks are off: the operator has to set PAAS_WEBHOOK_SECRET, and start the platform again.',
    );
  };

  return {
    async checkHeaders(header, appId) {
      const judged = await judgeHeaders(header, await secretOf(platformSecret(), appId));
      if (judged === 'wrong') throw signatureMismatch(appId);
      if (judged === 'unsigned') {
        const message =
          'The delivery is not signed. Enter the secret at the git host; X-Hub-Signature-256, X-Gitea-Signature, X-Forgejo-Signature, X-Gitlab-Token and Webhook-Signature are understood.';
        throw new AppError('unauthorized', message);
      }
    },

    async receive(delivery) {
      const signed = await verify(delivery, platformSecret());
      const event = readEvent(delivery.body, delivery.header('content-type') ?? '', signed.event);
      const forgotten: { app: AppRow; ref: string }[] = [];
      const result = await context.db.transaction().execute(async (trx): Promise<DeliveryResult> => {
        if (!(await recordDelivery(context, trx, signed, delivery.appId))) {
          return { outcome: 'replayed', message: 'This delivery was dealt with before. Nothing was started.' };
        }
        if (event.kind === 'other') return ignored(event.reason);
        const apps = await findApps(trx, event, delivery.appId);
        if (apps.length === 0) {
          const message =
            'No app has the address of this repository. Set it with PUT /v1/apps/<app>/git, then let the git host deliver again.';
          throw new AppError('not_found', message);
        }
        const results: DeliveryResult[] = [];
        for (const appId of apps) results.push(await applyPush(context, trx, appId, event, forgotten));
        // Of several apps the sender hears what happened, not to how many.
        return results.find(({ outcome }) => outcome === 'started') ?? results[0] ?? ignored('The app was deleted meanwhile.');
      });
      // After it: many replays may wait inside the transaction, each with a connection that this would wait for.
      for (const { app, ref } of forgotten) await forgetBranch(context, app, ref);
      return result;
    },
  };
}

function ignored(message: string): DeliveryResult {
  return { outcome: 'ignored', message };
}

function secretOf(platformSecret: string, appId: string | undefined): string | Promise<string> {
  return appId === undefined ? platformSecret : appWebhookSecret(platformSecret, appId as AppId);
}

async function verify({ header, body, appId }: Delivery, platformSecret: string): Promise<SignedDelivery> {
  const signed = await verifyDelivery(header, body, await secretOf(platformSecret, appId));
  if (signed === undefined) throw signatureMismatch(appId);
  return signed;
}

function signatureMismatch(appId: string | undefined): AppError {
  const where = appId === undefined ? 'PAAS_WEBHOOK_SECRET of the platform' : 'the secret that GET /v1/apps/<app>/git shows';
  const message = `webhook signature mismatch: the git host must sign with ${where}. If that has changed, register the webhook again.`;
  return new AppError('unauthorized', message);
}

/**
 * False when it is there already; waits for another transaction that is just recording it. A git host may name the
 * deliveries of one event to several webhooks alike, and an app's owner may name theirs as they like: each webhook has
 * its own names.
 */
async function recordDelivery(
  { clock }: Context,
  trx: Db,
  { provider, deliveryId }: SignedDelivery,
  appId: string | undefined,
): Promise<boolean> {
  const result = await trx
    .insertInto('webhook_deliveries')
    .values({ provider, delivery_id: appId === undefined ? deliveryId : `${appId}/${deliveryId}`, received_at: clock.now() })
    .onConflict((conflict) => conflict.columns(['provider', 'delivery_id']).doNothing())
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/**
 * Several apps, of several tenants too, may follow one repository: each fetches by its own means and builds into itself.
 * In one order, so that two deliveries cannot wait for each other.
 */
async function findApps(trx: Db, { spellings }: PushEvent, appId: string | undefined): Promise<AppId[]> {
  let select = trx
    .selectFrom('apps')
    .select('id')
    .where('git_url', 'in', spellings)
    .where('parent_app_id', 'is', null)
    .where('deleted_at', 'is', null);
  if (appId !== undefined) {
    if (!isUuid(appId)) return [];
    select = select.where('id', '=', appId as AppId);
  }
  return (await select.orderBy('id').execute()).map(({ id }) => id);
}

async function applyPush(
  context: Context,
  trx: Db,
  appId: AppId,
  event: PushEvent,
  forgotten: { app: AppRow; ref: string }[],
): Promise<DeliveryResult> {
  const app = await lockApp(trx, appId);
  if (app === undefined || app.deleted_at !== null || app.git_url === null) return ignored('The app was deleted meanwhile.');
  const branch = event.ref.slice(branchPrefix.length);
  checkBranchName(branch);
  // The signature covers the body alone: a copy under another delivery id would be new by its name.
  const { ref, before, after } = event;
  const recorded = await trx
    .insertInto('webhook_pushes')
    .values({ app_id: app.id, ref, before, after })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  if ((recorded.numInsertedOrUpdatedRows ?? 0n) === 0n) {
    return {
      outcome: 'replayed',
      message: `This push of ${branch} was dealt with before. To build it again: paas builds:create`,
    };
  }
  if (event.deleted) {
    if (branch === app.branch) return ignored(`${branch} is what the app is deployed from: its last release serves on.`);
    await removePreviews(context, trx, app.id, [branch]);
    forgotten.push({ app, ref });
    return { outcome: 'removed', message: `The preview of ${branch} is removed.` };
  }

  const isProduction = branch === app.branch;
  if (!isProduction && (await hasManyPreviews(trx, app, branch))) {
    return ignored(`There are ${mostPreviews} previews already: delete a branch to make room for ${branch}.`);
  }
  const target = isProduction ? app : await ensurePreview(context, trx, app, branch, app.created_by);
  const commit = after as ObjectId;
  await createBuild(context, trx, target, {
    commit,
    branch,
    refChanges: null,
    source: { url: app.git_url, ref, commit },
    createdBy: app.created_by,
  });
  const what = isProduction ? 'A build' : 'A build of a preview';
  return { outcome: 'started', message: `${what} of ${branch} at ${after.slice(0, 8)} was started.` };
}

/** Our copy of a branch that is gone. One that is left over by a crash is in nobody's way. */
async function forgetBranch({ db, git }: Context, app: AppRow, name: string): Promise<void> {
  const oldOid = await git.refs.readRef(app.repository_id, name);
  if (oldOid !== undefined) await git.refs.compareAndSwap(db, app.repository_id, [{ name, oldOid, newOid: undefined }]);
}

async function hasManyPreviews(trx: Db, app: AppRow, branch: string): Promise<boolean> {
  const others = await trx
    .selectFrom('apps')
    .select('id')
    .where('parent_app_id', '=', app.id)
    .where('preview_branch', '!=', branch)
    .where('deleted_at', 'is', null)
    .limit(mostPreviews)
    .execute();
  return others.length >= mostPreviews;
}

/** Forgets deliveries so old that nobody repeats them; what they built is remembered with the app. */
export async function sweepDeliveries({ db, clock }: Pick<Context, 'db' | 'clock'>): Promise<void> {
  const oldest = new Date(clock.now().getTime() - deliveryDays * 24 * 60 * 60 * 1000);
  await db.deleteFrom('webhook_deliveries').where('received_at', '<', oldest).execute();
}
