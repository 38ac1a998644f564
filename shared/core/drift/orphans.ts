import { listKnownAppIds } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import { addSeconds, secondsPerDay } from '#shared/durations.ts';
import type { AppId } from '#shared/ids.ts';
import { addonTypes } from '#shared/platform/addons.ts';
import type { Drift } from '#shared/platform/drift.ts';
import { noteOrphans } from './orphans-store.ts';

/** So many apps may be unknown without anything being wrong: a purge that was cut, a test, a database that is a day old. */
const fewOrphans = 10;
/** More than this part of all apps is unknown: it is the database that is wrong. */
const orphanShare = 0.1;

type OrphanContext = Pick<Context, 'db' | 'log' | 'platform' | 'clock'> & { settings: Pick<Context['settings'], 'orphanDays'> };

/**
 * Stops what the platform runs of apps that the database does not know, and removes what it has of them, with their data, `orphanDays`
 * after they were first found: until then, a newer backup of the database brings them back. It does nothing, and says so, when there
 * are many: then the database is more likely the wrong one, or one that was restored.
 * @returns the apps whose objects were removed
 */
export async function sweepOrphans(
  context: OrphanContext,
  drift: Pick<Drift, 'listAppIds'>,
  signal: AbortSignal,
): Promise<readonly AppId[]> {
  const { db, log, clock, settings } = context;
  const found = await drift.listAppIds(signal);
  const known = new Set(await listKnownAppIds(db, found));
  const ids = found.filter((id) => !known.has(id));
  if (ids.length > Math.max(fewOrphans, found.length * orphanShare)) {
    log.error(
      'Too many apps on the platform are not in the database: more than ten, and more than a tenth of all. Nothing is removed; check PAAS_DATABASE_URL and the last restore.',
      { onPlatform: found.length, unknown: ids.length },
    );
    return [];
  }
  const now = clock.now();
  const removed: AppId[] = [];
  for (const { appId, foundAt, isNew } of await noteOrphans(db, ids, now)) {
    const removedFrom = addSeconds(foundAt, settings.orphanDays * secondsPerDay);
    if (removedFrom <= now) {
      log.warn('The platform has objects of an app that does not exist. They are removed, with their data.', { appId, foundAt });
      await removeOrphan(context, appId);
      removed.push(appId);
      continue;
    }
    if (isNew)
      log.warn('The platform has objects of an app that does not exist. It is stopped. Its data is kept until it is removed.', {
        appId,
        removedFrom,
      });
    await stopOrphan(context, appId);
  }
  return removed;
}

async function stopOrphan({ platform }: OrphanContext, appId: AppId): Promise<void> {
  await platform.workloads.deleteWorkload(appId);
  for (const type of addonTypes) await platform.addons.stopAddon(appId, type);
}

async function removeOrphan({ platform }: OrphanContext, appId: AppId): Promise<void> {
  await platform.workloads.deleteWorkload(appId);
  for (const type of addonTypes) await platform.addons.deleteAddon(appId, type);
  await platform.caches.deleteCache(appId);
  await platform.appEnvironments.deleteApp(appId);
}
