import type { AppRow } from '#shared/core/apps/apps-store.ts';
import { listActiveHosts } from '#shared/core/apps/domains-store.ts';
import type { Context } from '#shared/core/context.ts';
import { readFormation } from '#shared/core/releases/formations-store.ts';
import { readReleaseConfig } from '#shared/core/releases/release-creation.ts';
import type { ReleaseRow } from '#shared/core/releases/releases-store.ts';
import type { AppId } from '#shared/ids.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';

/** What is to run for a release of an app, with the quantities of this moment. */
export async function workloadSpec(context: Context, app: AppRow, release: ReleaseRow): Promise<WorkloadSpec> {
  const quantities = await readQuantities(context, app.id, release.processes);
  return {
    appId: app.id,
    appName: app.name,
    tenantId: app.tenant_id,
    releaseId: release.id,
    releaseVersion: release.version,
    imageUrl: release.image_url,
    processes: Object.entries(release.processes).map(([type, command]) => ({ type, command, quantity: quantities[type] ?? 0 })),
    config: await readReleaseConfig(context, release),
    // An add-on's address is of this moment: what a release was made with may be of a server that is gone.
    bindings: await context.bindings.readBindings(context.db, app.tenant_id, app.id),
    hosts: [context.addresses.appHost(app.name), ...(await listActiveHosts(context.db, app.id))],
  };
}

/** As scaled; else one web and none of the others, or one of each for an app that has no web. */
export async function readQuantities(
  { db }: Context,
  appId: AppId,
  processes: Readonly<Record<string, string>>,
): Promise<Record<string, number>> {
  const scaled = await readFormation(db, appId);
  const hasWeb = 'web' in processes;
  return Object.fromEntries(
    Object.keys(processes).map((type) => [type, scaled.get(type) ?? (type === 'web' || !hasWeb ? 1 : 0)]),
  );
}
