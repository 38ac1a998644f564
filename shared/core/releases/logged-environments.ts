import type { AppRow } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import { readReleaseConfig } from '#shared/core/releases/release-creation.ts';
import { listNewestReleases } from '#shared/core/releases/releases-store.ts';
import { readEnvironment } from '#shared/core/releases/variables.ts';

/** Logs reach back this far, as a rule. */
const mostReleases = 50;

/**
 * The variables of an app, with those of its add-ons, and those of its newest releases: what a line in its log may contain. Secret.
 * Variables of a release that cannot be read are left out, as no process ever got them.
 */
export async function readLoggedEnvironments(
  context: Context,
  { id, tenant_id }: Pick<AppRow, 'id' | 'tenant_id'>,
): Promise<readonly Readonly<Record<string, string>>[]> {
  const releases = await listNewestReleases(context.db, id, mostReleases);
  return Promise.all([
    readEnvironment(context, context.db, tenant_id, id),
    ...releases.map((release) => readReleaseConfig(context, release).catch(() => ({}))),
  ]);
}
