import { enqueueAddonJobs } from '#shared/core/addons/addon-job.ts';
import { enqueueEnsureWorkload, enqueueRepairApp } from '#shared/core/apps/app-jobs.ts';
import { findAppOfHost, findAppOfTenant, readAppById } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import type { AppId } from '#shared/ids.ts';
import type { Drift, DriftTarget } from '#shared/platform/drift.ts';

/**
 * Puts back what somebody else has changed or deleted on the platform, until the signal aborts: jobs make every object of the app again from
 * the database. Only one process of a platform may do this at a time.
 */
export async function followDrift(context: Context, drift: Pick<Drift, 'watchDrift'>, signal: AbortSignal): Promise<void> {
  for await (const target of drift.watchDrift(signal)) {
    try {
      await repair(context, target);
    } catch (error) {
      context.log.error('What somebody has changed on the platform could not be put back.', { ...target, error });
    }
  }
}

async function repair(context: Context, target: DriftTarget): Promise<void> {
  const { db, log } = context;
  const appId = await appOf(context, target);
  // The leftovers of an app that does not exist are removed by the sweep.
  const app = appId === undefined ? undefined : await readAppById(db, appId);
  if (app === undefined) return;
  log.warn('Somebody has changed objects of the platform. They are put back.', { ...target, app: app.name });
  // Not behind the app's deploys, which may take hours: its network and its names are needed meanwhile, too.
  if (app.deleted_at === null) await enqueueRepairApp(context, db, app.id);
  if (target.of === 'tenant') return;
  await enqueueEnsureWorkload(context, db, app.id);
  if (target.of === 'app') await enqueueAddonJobs(context, db, app.id);
}

/** An app whose jobs put the target back. */
async function appOf({ db, addresses }: Context, target: DriftTarget): Promise<AppId | undefined> {
  switch (target.of) {
    case 'app':
      return target.appId;
    case 'tenant':
      return findAppOfTenant(db, target.tenantId);
    case 'certificate': {
      const { host } = target;
      const name = host.split('.')[0] ?? '';
      return findAppOfHost(db, { host, name: addresses.appHost(name) === host ? name : undefined });
    }
  }
}
