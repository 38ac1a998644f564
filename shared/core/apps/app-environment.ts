import { type AppRow, readAppById } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import type { AppId } from '#shared/ids.ts';

/**
 * Makes what the platform needs around an app (SPEC.md §2, creating an app), and asks for the certificate of its subdomain.
 * Whatever runs an app calls it first: the job that the app's creation enqueued may not have succeeded yet.
 */
export async function ensureAppEnvironment({ platform, addresses }: Context, app: AppRow): Promise<void> {
  const host = addresses.appHost(app.name);
  await platform.appEnvironments.ensureApp({ appId: app.id, appName: app.name, tenantId: app.tenant_id, host });
  await platform.certificates.ensureCertificate(host);
}

/** Ensures what the platform keeps for an app, unless the app was deleted meanwhile. */
export async function runEnsureAppJob(context: Context, appId: AppId): Promise<void> {
  const app = await readAppById(context.db, appId);
  if (app?.deleted_at === null) await ensureAppEnvironment(context, app);
}
