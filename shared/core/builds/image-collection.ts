import { enqueueCollectImages } from '#shared/core/apps/app-jobs.ts';
import { lockApp } from '#shared/core/apps/apps-store.ts';
import { hasRunningBuild } from '#shared/core/builds/builds-store.ts';
import type { Context } from '#shared/core/context.ts';
import {
  listAppIdsWithOldImages,
  listKeptImages,
  markCollectedImages,
  readBaseRelease,
} from '#shared/core/releases/releases-store.ts';
import type { AppId } from '#shared/ids.ts';

/**
 * Deletes the images of an app that none of its newest releases, no deploy and no instance needs, and those that no release was
 * made of. It runs in the queue of the app's builds, so that no build stores an image meanwhile.
 */
export async function runCollectImagesJob(context: Context, appId: AppId): Promise<void> {
  const { db, platform } = context;
  // A build that was interrupted may have an image and no release yet. The job runs again after its release.
  if (await hasRunningBuild(db, appId)) return;
  const stored = await platform.images.listImages(appId);
  if (stored.length === 0) return;
  const kept = await giveUpImages(context, appId);
  if (kept === undefined) return;
  for (const imageUrl of stored) if (!kept.has(imageUrl)) await platform.images.deleteImage(imageUrl);
}

/** Decides in one transaction, with the app's lock: nobody rolls back to a release whose image is about to be deleted. */
async function giveUpImages(context: Context, appId: AppId): Promise<ReadonlySet<string> | undefined> {
  const { db, clock, platform, settings } = context;
  const instances = await platform.workloads.readInstances(appId);
  const versions = [...new Set(instances.map(({ releaseVersion }) => releaseVersion))];
  return db.transaction().execute(async (trx) => {
    // A deleted app is purged with all of its images, or restored with them.
    const app = await lockApp(trx, appId);
    if (app === undefined || app.deleted_at !== null) return undefined;
    const base = await readBaseRelease(trx, appId);
    const query = {
      appId,
      releases: settings.keptReleases,
      versions: base === undefined ? versions : [...versions, base.version],
    };
    const kept = await listKeptImages(trx, query);
    if (kept.length > 0) await markCollectedImages(trx, appId, kept, clock.now());
    return new Set(kept);
  });
}

/** Enqueues the job for every app that may have images to delete, for example since the setting was lowered. */
export async function enqueueImageCollections(context: Context): Promise<void> {
  const { db, settings } = context;
  for (const appId of await listAppIdsWithOldImages(db, settings.keptReleases)) await enqueueCollectImages(context, db, appId);
}
