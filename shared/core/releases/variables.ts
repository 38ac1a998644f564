import type { Context } from '#shared/core/context.ts';
import { listConfigVars, replaceConfigVars } from '#shared/core/releases/config-store.ts';
import type { Db } from '#shared/database/db.ts';
import type { AppId, TenantId } from '#shared/ids.ts';
import { workloadEnvironment } from '#shared/platform/workload-environment.ts';

/** The app's variables, unsealed. Secret. */
export async function readVariables({ secrets }: Context, db: Db, appId: AppId): Promise<Record<string, string>> {
  const rows = await listConfigVars(db, appId);
  const opened = rows.map(async (row) => [row.name, await secrets.open(row.value, purpose(appId, row.name))] as const);
  return Object.fromEntries(await Promise.all(opened));
}

/** The variables that a process of the app gets: its own, and above them those of its add-ons. Secret. */
export async function readEnvironment(
  context: Context,
  db: Db,
  tenantId: TenantId,
  appId: AppId,
): Promise<Record<string, string>> {
  const config = await readVariables(context, db, appId);
  return workloadEnvironment({ config, bindings: await context.bindings.readBindings(db, tenantId, appId) });
}

/** Replaces all variables of the app. */
export async function writeVariables(
  { secrets }: Context,
  trx: Db,
  appId: AppId,
  variables: Readonly<Record<string, string>>,
): Promise<void> {
  const sealed = Object.entries(variables).map(async ([name, value]) => ({
    name,
    value: await secrets.seal(value, purpose(appId, name)),
  }));
  await replaceConfigVars(trx, appId, await Promise.all(sealed));
}

function purpose(appId: AppId, name: string): string {
  return `config:${appId}:${name}`;
}
