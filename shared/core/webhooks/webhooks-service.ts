import { requireAppToChange } from '#shared/core/apps/app-access.ts';
import { enqueueLook } from '#shared/core/apps/app-jobs.ts';
import { listAppsBySource, listPreviewsOf, readAppById } from '#shared/core/apps/apps-store.ts';
import { checkBranchName } from '#shared/core/apps/branch-name.ts';
import { reportBuild } from '#shared/core/builds/build-report.ts';
import { readLatestBuild } from '#shared/core/builds/builds-store.ts';
import type { Context } from '#shared/core/context.ts';
import { appWebhookSecret } from '#shared/core/repositories/webhook-secret.ts';
import {
  addSourceDelivery,
  listSourceDeliveries,
  type SourceDeliveryRow,
} from '#shared/core/webhooks/source-deliveries-store.ts';
import { createSourceFollower } from '#shared/core/webhooks/source-follower.ts';
import { type HintRow, insertHint } from '#shared/core/webhooks/source-looks-store.ts';
import { type OtherEvent, type PushEvent, readEvent } from '#shared/core/webhooks/webhook-event.ts';
import { judgeHeaders, type SignedDelivery, verifyDelivery } from '#shared/core/webhooks/webhook-signature.ts';
import type { Delivery, DeliveryResult, ReceivedDelivery, Webhooks } from '#shared/core/webhooks/webhooks.ts';
import { type DeliveryName, deleteDeliveries, hasDelivery, insertDelivery } from '#shared/core/webhooks/webhooks-store.ts';
import type { Db } from '#shared/database/db.ts';
import { addSeconds, secondsPerDay } from '#shared/durations.ts';
import { AppError } from '#shared/errors.ts';
import type { AppId } from '#shared/ids.ts';

/** Long after any git host has given up on delivering. */
const deliveryDays = 90;
/** Before the job looks, the request does: its answer then says what happened. */
const graceSeconds = 10;

/** Verifies and records deliveries, and follows them. */
export function createWebhooks(context: Context): Webhooks {
  const platformSecret = (): string => {
    const { webhookSecret } = context.settings;
    if (webhookSecret !== undefined) return webhookSecret;
    throw new AppError(
      'forbidden',
      'Webhooks are off: the operator has to set PAAS_WEBHOOK_SECRET, and start the platform again.',
    );
  };

  const follow = createSourceFollower(context);

  const process = async (delivery: Delivery, signed: SignedDelivery): Promise<FollowedHint[] | DeliveryResult> => {
    const name = nameDelivery(signed, delivery.appId);
    if (await hasDelivery(context.db, name)) return replayed;
    const event = readEvent(delivery.body, delivery.header('content-type') ?? '', signed.event);
    const recorded = await record(context, { name, event, appId: delivery.appId });
    if ('outcome' in recorded) return recorded;
    return Promise.all(
      recorded.hints.map(async (hint, index) => ({
        appId: hint.appId,
        result: index < mostAsked ? await follow(hint) : accepted,
      })),
    );
  };

  const log = ({ provider, event, deliveryId }: SignedDelivery, appId: AppId, result: LoggedResult): Promise<void> =>
    addSourceDelivery(context.db, {
      app_id: appId,
      provider,
      event: event.slice(0, longestName),
      delivery_id: deliveryId.slice(0, longestName),
      ...result,
      received_at: context.clock.now(),
    });

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
      const { appId } = delivery;
      try {
        const results = await process(delivery, signed);
        if ('outcome' in results) {
          if (appId !== undefined) await log(signed, appId as AppId, results);
          return results;
        }
        await Promise.all(results.map(({ appId: id, result }) => log(signed, id, result)));
        // Of several apps the sender hears what happened, not to how many.
        const [first] = results;
        return (results.find(({ result }) => result.outcome === 'started') ?? first)?.result ?? accepted;
      } catch (error) {
        if (appId !== undefined && error instanceof AppError && error.code !== 'internal')
          await log(signed, appId as AppId, { outcome: 'refused', message: error.message });
        throw error;
      }
    },

    async listDeliveries(caller, app) {
      const { row } = await requireAppToChange(context, caller, app);
      return (await listSourceDeliveries(context.db, row.id)).map(toReceivedDelivery);
    },
  };
}

/** Of names that the sender chose. */
const longestName = 200;

interface FollowedHint {
  appId: AppId;
  result: DeliveryResult;
}

type LoggedResult = Pick<ReceivedDelivery, 'outcome' | 'message'>;

function toReceivedDelivery(row: SourceDeliveryRow): ReceivedDelivery {
  return {
    provider: row.provider,
    event: row.event,
    deliveryId: row.delivery_id,
    outcome: row.outcome,
    message: row.message,
    receivedAt: row.received_at,
  };
}

/** Apps whose source is looked at before the answer; that of others right after it. */
const mostAsked = 10;

const accepted: DeliveryResult = { outcome: 'accepted', message: 'The git host is asked for its branches soon.' };

interface RecordedDelivery {
  hints: { appId: AppId; id: HintRow['id']; branch: string }[];
}

interface NamedEvent {
  name: DeliveryName;
  event: PushEvent | OtherEvent;
  /** The app that the webhook belongs to; undefined for the operator's own. */
  appId: string | undefined;
}

/** The one transaction of a delivery: its name, and for each app what to ask the git host about, with the job that does. */
async function record(context: Context, { name, event, appId }: NamedEvent): Promise<RecordedDelivery | DeliveryResult> {
  const now = context.clock.now();
  return context.db.transaction().execute(async (trx): Promise<RecordedDelivery | DeliveryResult> => {
    if (!(await insertDelivery(trx, name, now))) return replayed;
    if (event.kind === 'other') {
      if (event.pullRequest !== undefined) await reportPreviews(context, trx, event.pullRequest, appId);
      return { outcome: 'ignored', message: event.reason };
    }
    const { branch, commit, skipsBuild } = event;
    const apps = await findApps(trx, event, appId);
    if (apps.length === 0) {
      throw new AppError('not_found', await whyNoApp(trx, event, appId));
    }
    checkBranchName(branch);
    const hints: RecordedDelivery['hints'] = [];
    for (const id of apps) {
      const hint = await insertHint(trx, { app_id: id, branch, commit, skips_build: skipsBuild, created_at: now });
      hints.push({ appId: id, id: hint, branch });
      await enqueueLook(context, trx, id, { runAt: addSeconds(now, graceSeconds), failures: 0 });
    }
    return { hints };
  });
}

/** A pull request may be opened long after its branch was pushed. */
async function reportPreviews(
  context: Context,
  trx: Db,
  { branch, spellings }: NonNullable<OtherEvent['pullRequest']>,
  appId: string | undefined,
): Promise<void> {
  for (const id of await findApps(trx, { spellings }, appId)) {
    for (const preview of await listPreviewsOf(trx, id, [branch])) {
      const build = await readLatestBuild(trx, preview);
      if (build !== undefined) await reportBuild(context, trx, build);
    }
  }
}

/** A webhook of an app stays with a repository that is renamed, and then delivers under another address. */
async function whyNoApp(db: Db, { spellings: [spelling = ''] }: PushEvent, appId: string | undefined): Promise<string> {
  const app = appId === undefined ? undefined : await readAppById(db, appId as AppId);
  if (app?.git_url == null || app.deleted_at !== null)
    return 'No app follows this repository. Set its address with `paas git:source:set`, then let the git host deliver again.';
  return `The app follows ${app.git_url}, and the delivery is of ${spelling}. If the repository was renamed, set its new address with \`paas git:source:set\`.`;
}

const replayed: DeliveryResult = {
  outcome: 'replayed',
  message: 'This delivery was dealt with before. Nothing was started.',
};

function secretOf(platformSecret: string, appId: string | undefined): string | Promise<string> {
  return appId === undefined ? platformSecret : appWebhookSecret(platformSecret, appId as AppId);
}

async function verify({ header, body, appId }: Delivery, platformSecret: string): Promise<SignedDelivery> {
  const signed = await verifyDelivery(header, body, await secretOf(platformSecret, appId));
  if (signed === undefined) throw signatureMismatch(appId);
  return signed;
}

function signatureMismatch(appId: string | undefined): AppError {
  const where = appId === undefined ? 'PAAS_WEBHOOK_SECRET of the platform' : 'the secret that `paas git:source` shows';
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
async function findApps(db: Db, { spellings }: Pick<PushEvent, 'spellings'>, appId: string | undefined): Promise<AppId[]> {
  const apps = await listAppsBySource(db, spellings);
  return appId === undefined ? apps : apps.filter((id) => id === appId);
}

/** Deletes deliveries so old that nobody repeats them; what they built is remembered with the app. */
export async function sweepDeliveries({ db, clock }: Pick<Context, 'db' | 'clock'>): Promise<void> {
  await deleteDeliveries(db, addSeconds(clock.now(), -deliveryDays * secondsPerDay));
}
