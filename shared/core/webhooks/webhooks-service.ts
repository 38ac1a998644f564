import { type AppRow, listAppsBySource, listPreviewsOf, lockApp, readAppById } from '#shared/core/apps/apps-store.ts';
import { checkBranchName } from '#shared/core/apps/branch-name.ts';
import { afterPurges, choosePreviewBranches, ensurePreview, tooManyPreviewsMessage } from '#shared/core/apps/previews.ts';
import { createBuild, type FoundCaches, withCaches } from '#shared/core/builds/build-creation.ts';
import type { Context } from '#shared/core/context.ts';
import { removePreviews } from '#shared/core/deletion/preview-removal.ts';
import { appWebhookSecret } from '#shared/core/repositories/webhook-secret.ts';
import { type OtherEvent, type PushEvent, readEvent } from '#shared/core/webhooks/webhook-event.ts';
import { judgeHeaders, type SignedDelivery, verifyDelivery } from '#shared/core/webhooks/webhook-signature.ts';
import type { Delivery, DeliveryResult, Webhooks } from '#shared/core/webhooks/webhooks.ts';
import {
  type DeliveryName,
  deleteDeliveries,
  hasDelivery,
  insertDelivery,
  insertPush,
} from '#shared/core/webhooks/webhooks-store.ts';
import type { Db } from '#shared/database/db.ts';
import { addSeconds, secondsPerDay } from '#shared/durations.ts';
import { AppError } from '#shared/errors.ts';
import type { AppId, ObjectId } from '#shared/ids.ts';

const branchPrefix = 'refs/heads/';
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
      const name = nameDelivery(signed, delivery.appId);
      if (await hasDelivery(context.db, name)) return replayed;
      const event = readEvent(delivery.body, delivery.header('content-type') ?? '', signed.event);
      const accepted = await afterPurges(context, async () =>
        withCaches(context, await listBuiltApps(context.db, event, delivery.appId), (caches) =>
          accept(context, { name, event, appId: delivery.appId, caches }),
        ),
      );
      // After it: many replays may wait inside the transaction, each with a connection that this would wait for.
      for (const { app, ref } of accepted.deletedRefs) await deleteRef(context, app, ref);
      return accepted.result;
    },
  };
}

interface AcceptedDelivery {
  result: DeliveryResult;
  deletedRefs: readonly DeletedRef[];
}

/** The one transaction of a delivery: its name, what it moves, and the builds of that with their jobs. */
async function accept(
  context: Context,
  { name, event, appId, caches }: NamedEvent & { caches: FoundCaches },
): Promise<AcceptedDelivery> {
  const deletedRefs: DeletedRef[] = [];
  const result = await context.db.transaction().execute(async (trx): Promise<DeliveryResult> => {
    if (!(await insertDelivery(trx, name, context.clock.now()))) return replayed;
    if (event.kind === 'other') return ignored(event.reason);
    const apps = await findApps(trx, event, appId);
    if (apps.length === 0) {
      const message =
        'No app has the address of this repository. Set it with PUT /v1/apps/<app>/git, then let the git host deliver again.';
      throw new AppError('not_found', message);
    }
    const results: DeliveryResult[] = [];
    for (const id of apps) results.push(await applyPush({ context, trx, event, caches, deletedRefs }, id));
    // Of several apps the sender hears what happened, not to how many.
    return results.find(({ outcome }) => outcome === 'started') ?? results[0] ?? ignored('The app was deleted meanwhile.');
  });
  return { result, deletedRefs };
}

interface NamedEvent {
  name: DeliveryName;
  event: PushEvent | OtherEvent;
  /** The app that the webhook belongs to; undefined for the operator's own. */
  appId: string | undefined;
}

const replayed: DeliveryResult = {
  outcome: 'replayed',
  message: 'This delivery was dealt with before. Nothing was started.',
};

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
 * A git host may name the deliveries of one event to several webhooks alike, and an app's owner may name theirs as they
 * like: each webhook has its own names.
 */
function nameDelivery({ provider, deliveryId }: SignedDelivery, appId: string | undefined): DeliveryName {
  return { provider, deliveryId: appId === undefined ? deliveryId : `${appId}/${deliveryId}` };
}

/**
 * Several apps, of several tenants too, may follow one repository: each fetches by its own means and builds into itself.
 * In one order, so that two deliveries cannot wait for each other.
 */
async function findApps(db: Db, { spellings }: PushEvent, appId: string | undefined): Promise<AppId[]> {
  const apps = await listAppsBySource(db, spellings);
  return appId === undefined ? apps : apps.filter((id) => id === appId);
}

/** The apps that the push builds and that exist already: those it is for, or their previews of its branch. */
async function listBuiltApps(db: Db, event: PushEvent | OtherEvent, appId: string | undefined): Promise<AppId[]> {
  if (event.kind === 'other' || event.deleted) return [];
  const branch = event.ref.slice(branchPrefix.length);
  const built: AppId[] = [];
  for (const id of await findApps(db, event, appId)) {
    const app = await readAppById(db, id);
    built.push(...(app?.branch === branch ? [id] : await listPreviewsOf(db, id, [branch])));
  }
  return built;
}

/** A branch that the git host has deleted, of an app that has a copy of it. */
interface DeletedRef {
  app: AppRow;
  ref: string;
}

interface EventPush {
  context: Context;
  trx: Db;
  event: PushEvent;
  caches: FoundCaches;
  /** Takes what is to be deleted after the transaction. */
  deletedRefs: DeletedRef[];
}

async function applyPush({ context, trx, event, caches, deletedRefs }: EventPush, appId: AppId): Promise<DeliveryResult> {
  const app = await lockApp(trx, appId);
  if (app === undefined || app.deleted_at !== null || app.git_url === null) return ignored('The app was deleted meanwhile.');
  const { ref, after } = event;
  const branch = ref.slice(branchPrefix.length);
  checkBranchName(branch);
  // The signature covers the body alone: a copy under another delivery id would be new by its name.
  if (!(await insertPush(trx, app.id, event))) {
    return {
      outcome: 'replayed',
      message: `This push of ${branch} was dealt with before. To build it again: paas builds:create`,
    };
  }
  if (event.deleted) {
    if (branch === app.branch) return ignored(`${branch} is what the app is deployed from: its last release serves on.`);
    await removePreviews(context, trx, app.id, [branch]);
    deletedRefs.push({ app, ref });
    return { outcome: 'removed', message: `The preview of ${branch} is removed.` };
  }

  const isProduction = branch === app.branch;
  if (!isProduction && !(await choosePreviewBranches(trx, app.id, [branch])).has(branch))
    return ignored(tooManyPreviewsMessage(branch));
  const target = isProduction ? app : await ensurePreview(context, trx, app, branch, app.created_by);
  const commit = after as ObjectId;
  await createBuild(context, trx, target, {
    commit,
    branch,
    refChanges: null,
    source: { url: app.git_url, ref, commit },
    createdBy: app.created_by,
    caches,
  });
  const what = isProduction ? 'A build' : 'A build of a preview';
  return { outcome: 'started', message: `${what} of ${branch} at ${after.slice(0, 8)} was started.` };
}

/** Our copy of a branch that is gone. One that is left over by a crash is in nobody's way. */
async function deleteRef({ db, git }: Context, app: AppRow, name: string): Promise<void> {
  const oldOid = await git.refs.readRef(app.repository_id, name);
  if (oldOid !== undefined) await git.refs.compareAndSwap(db, app.repository_id, [{ name, oldOid, newOid: undefined }]);
}

/** Deletes deliveries so old that nobody repeats them; what they built is remembered with the app. */
export async function sweepDeliveries({ db, clock }: Pick<Context, 'db' | 'clock'>): Promise<void> {
  await deleteDeliveries(db, addSeconds(clock.now(), -deliveryDays * secondsPerDay));
}
