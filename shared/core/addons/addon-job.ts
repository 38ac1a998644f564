import { addonStatus, addonVariable, planSize } from '#shared/core/addons/addon-plans.ts';
import { openAddonCredentials, openAddonPassword, sealAddonSecret } from '#shared/core/addons/addon-secrets.ts';
import type { AddonStatus } from '#shared/core/addons/addons.ts';
import {
  type AddonRow,
  deleteAddonRow,
  listAddonTypes,
  readAddonRow,
  recordAddonState,
} from '#shared/core/addons/addons-store.ts';
import { enqueueEnsureAddon } from '#shared/core/apps/app-jobs.ts';
import { type AppRow, lockApp, readAppById } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import { hasOpenDeploy } from '#shared/core/releases/deploys-store.ts';
import { createRelease } from '#shared/core/releases/release-creation.ts';
import { readBaseRelease } from '#shared/core/releases/releases-store.ts';
import type { Db } from '#shared/database/db.ts';
import { millisecondsPerHour } from '#shared/durations.ts';
import type { AppId } from '#shared/ids.ts';
import type { AddonCredentials, AddonType } from '#shared/platform/addons.ts';

const pollMilliseconds = 100;
const patienceMilliseconds = 30_000;
/** For an add-on that was ready before: the app's deploys wait meanwhile. */
const shortPatienceMilliseconds = 5000;
const retryMilliseconds = 15_000;
/** Between two looks at whether the release without a removed add-on is live. */
const releasePollMilliseconds = 1000;
const longestReleaseMilliseconds = millisecondsPerHour;

/** For each add-on of the app, in any state. */
export async function enqueueAddonJobs(context: Context, db: Db, appId: AppId): Promise<void> {
  for (const type of await listAddonTypes(db, appId)) await enqueueEnsureAddon(context, db, appId, type);
}

/**
 * Makes the add-on's servers match its row, waits until they answer, and creates a release when the address has changed. It
 * may run again.
 */
export async function runEnsureAddonJob(context: Context, appId: AppId, type: AddonType, stopping: AbortSignal): Promise<void> {
  const { db, platform } = context;
  const row = await readAddonRow(db, appId, type);
  const app = await readAppById(db, appId);
  if (row === undefined || app === undefined) return;
  if (row.removed_at !== null) {
    if (await isStillUsed(context, row, row.removed_at)) return await enqueueLater(context, db, row, releasePollMilliseconds);
    await platform.addons.deleteAddon(appId, type);
    await deleteAddonRow(db, row);
    return;
  }
  if (app.deleted_at !== null) {
    await platform.addons.stopAddon(appId, type);
    return;
  }
  const credentials = await platform.addons.ensureAddon({
    appId,
    tenantId: app.tenant_id,
    type,
    ...planSize(type, row.plan),
    password: await openAddonPassword(context, app.tenant_id, row),
  });
  const status = await waitUntilReady(context, row, stopping);
  await recordOutcome(context, app, row, credentials, status);
}

/** Whether the release without the add-on may still be on its way. One that never ends keeps no server for ever. */
async function isStillUsed({ db, clock }: Context, row: AddonRow, removedAt: Date): Promise<boolean> {
  const isOverdue = clock.now().getTime() - removedAt.getTime() > longestReleaseMilliseconds;
  return !isOverdue && (await hasOpenDeploy(db, row.app_id));
}

async function enqueueLater(context: Context, db: Db, row: AddonRow, milliseconds: number): Promise<void> {
  const at = new Date(context.clock.now().getTime() + milliseconds);
  await enqueueEnsureAddon(context, db, row.app_id, row.addon_type, at);
}

/** @returns `Ready`, or the status after the longest wait */
async function waitUntilReady(
  { clock, platform }: Context,
  row: AddonRow,
  stopping: AbortSignal,
): Promise<Exclude<AddonStatus, 'creating' | 'deleting'>> {
  const deadline = clock.now().getTime() + (row.status === 'creating' ? patienceMilliseconds : shortPatienceMilliseconds);
  for (;;) {
    const status = addonStatus(await platform.addons.readAddon(row.app_id, row.addon_type));
    if (status === 'Ready' || clock.now().getTime() >= deadline) return status;
    await clock.sleep(pollMilliseconds, stopping);
  }
}

async function recordOutcome(
  context: Context,
  app: AppRow,
  seen: AddonRow,
  credentials: AddonCredentials,
  status: Exclude<AddonStatus, 'creating' | 'deleting'>,
): Promise<void> {
  const { db } = context;
  const type = seen.addon_type;
  await db.transaction().execute(async (trx) => {
    const locked = await lockApp(trx, app.id);
    const row = await readAddonRow(trx, app.id, type);
    // A change was requested meanwhile, and has a job of its own.
    if (locked === undefined || row === undefined || row.generation !== seen.generation) return;
    if (status !== 'Ready') await enqueueLater(context, trx, row, retryMilliseconds);
    // A store of several servers serves as soon as one of them is ready.
    const isReachable = status !== 'Creating';
    const known = await openAddonCredentials(context, app.tenant_id, row);
    const isNew = isReachable && known?.uri !== credentials.uri;
    const sealed = isNew
      ? await sealAddonSecret(context, app, { type, key: 'credentials', value: JSON.stringify(credentials) })
      : row.credentials;
    await recordAddonState(trx, row, { status, credentials: sealed });
    const base = isNew ? await readBaseRelease(trx, app.id) : undefined;
    if (base === undefined) return;
    await createRelease(context, trx, locked, {
      kind: 'addon',
      image: base,
      description: known === undefined ? `Attach ${type} (${addonVariable(type)})` : `Update ${addonVariable(type)}`,
      createdBy: row.changed_by,
      buildId: null,
      refChanges: base.ref_changes,
    });
  });
}
