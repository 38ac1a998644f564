import { listKnownAppIds } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import type { AppId } from '#shared/ids.ts';
import { addonTypes } from '#shared/platform/addons.ts';
import type { Drift } from '#shared/platform/drift.ts';

/** So many apps may be unknown without anything being wrong: a purge that was cut, a test, a database that is a day old. */
const fewOrphans = 10;
/** More than this part of all apps is unknown: it is the database that is wrong. */
const orphanShare = 0.1;

/**
 * Removes what the platform has of apps that the database does not know. It removes nothing, and says so, when that is much: then the
 * database is more likely the wrong one, or one that was restored.
 * @returns the apps whose objects were removed
 */
export async function sweepOrphans(
  context: Pick<Context, 'db' | 'log' | 'platform'>,
  drift: Pick<Drift, 'listAppIds'>,
  signal: AbortSignal,
): Promise<readonly AppId[]> {
  const { db, log, platform } = context;
  const found = await drift.listAppIds(signal);
  const known = new Set(await listKnownAppIds(db, found));
  const orphans = found.filter((id) => !known.has(id));
  if (orphans.length > Math.max(fewOrphans, found.length * orphanShare)) {
    log.error(
      'Most apps on the platform are not in the database. Nothing is removed; check PAAS_DATABASE_URL and the last restore.',
      {
        onPlatform: found.length,
        unknown: orphans.length,
      },
    );
    return [];
  }
  for (const appId of orphans) {
    log.warn('The platform has objects of an app that does not exist. They are removed.', { appId });
    await platform.workloads.deleteWorkload(appId);
    for (const type of addonTypes) await platform.addons.deleteAddon(appId, type);
    await platform.caches.deleteCache(appId);
    await platform.appEnvironments.deleteApp(appId);
  }
  return orphans;
}
