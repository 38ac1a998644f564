import type { AppRow } from '#shared/core/apps/apps-store.ts';
import { listActiveHosts } from '#shared/core/apps/domains-store.ts';
import type { Context } from '#shared/core/context.ts';
import { readFormation } from '#shared/core/releases/formations-store.ts';
import { readReleaseConfig } from '#shared/core/releases/release-creation.ts';
import type { ReleaseRow } from '#shared/core/releases/releases-store.ts';
import { readSettings } from '#shared/core/releases/settings-store.ts';
import type { AppId } from '#shared/ids.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';

/** What shall run of a release, with the app's present quantities, add-ons, hosts and affinity. */
export async function workloadSpec(context: Context, app: AppRow, release: ReleaseRow): Promise<WorkloadSpec> {
  const quantities = await readQuantities(context, app.id, release.processes);
  const { sessionAffinity } = await readSettings(context.db, app);
  return {
    appId: app.id,
    appName: app.name,
    tenantId: app.tenant_id,
    releaseId: release.id,
    releaseVersion: release.version,
    imageUrl: release.image_url,
    processes: Object.entries(release.processes).map(([type, command]) => ({ type, command, quantity: quantities[type] ?? 0 })),
    config: await readReleaseConfig(context, release),
    // The add-ons' present addresses: a server may have moved since the release was created.
    bindings: await context.bindings.readBindings(context.db, app.tenant_id, app.id),
    ...release.boot,
    ...(sessionAffinity === null ? {} : { sessionAffinity }),
    hosts: [context.addresses.appHost(app.name), ...(await listActiveHosts(context.db, app.id))],
  };
}

/** As scaled. Types that never were have one instance if they are 'web', or if the app has no 'web', else none. */
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
