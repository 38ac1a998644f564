/** What of an add-on is secret: sealed in its row, open to the app and to who may see the app's variables. */
import { addonVariable } from '#shared/core/addons/addon-plans.ts';
import { type AddonRow, listAddonRows } from '#shared/core/addons/addons-store.ts';
import type { Context } from '#shared/core/context.ts';
import { readVariables } from '#shared/core/releases/variables.ts';
import type { Db } from '#shared/database/schema.ts';
import type { AppId, TenantId } from '#shared/ids.ts';
import { authSecretName, kvstoreName } from '#shared/names.ts';
import type { AddonCredentials, AddonType } from '#shared/platform/addons.ts';

/** 128 bits in hexadecimal: fit for a URL as it is. */
export function newAddonPassword(): string {
  return crypto.getRandomValues(new Uint8Array(16)).toHex();
}

type SecretKey = 'password' | 'credentials';

export function sealAddonSecret(
  { secrets }: Context,
  tenantId: TenantId,
  appId: AppId,
  type: AddonType,
  key: SecretKey,
  value: string,
): Promise<string> {
  return secrets.seal(value, purpose(tenantId, appId, type, key));
}

export function openAddonPassword({ secrets }: Context, tenantId: TenantId, row: AddonRow): Promise<string> {
  return secrets.open(row.password, purpose(tenantId, row.app_id, row.addon_type, 'password'));
}

/** Undefined until the servers were told. */
export async function openAddonCredentials(
  { secrets }: Context,
  tenantId: TenantId,
  row: AddonRow,
): Promise<AddonCredentials | undefined> {
  if (row.credentials === null) return undefined;
  const opened = await secrets.open(row.credentials, purpose(tenantId, row.app_id, row.addon_type, 'credentials'));
  return JSON.parse(opened) as AddonCredentials;
}

/** The variables that add-ons give the app: each the address as its secret has it. */
export async function readAddonVariables(
  context: Context,
  db: Db,
  tenantId: TenantId,
  appId: AppId,
): Promise<Record<string, string>> {
  const rows = await listAddonRows(db, appId);
  const entries = rows.map(async (row) => {
    const credentials = await openAddonCredentials(context, tenantId, row);
    return credentials === undefined ? [] : [[addonVariable(row.addon_type), credentials.uri] as const];
  });
  return Object.fromEntries((await Promise.all(entries)).flat());
}

/** All that a process of the app sees. */
export async function readEnvironment(
  context: Context,
  db: Db,
  tenantId: TenantId,
  appId: AppId,
): Promise<Record<string, string>> {
  return { ...(await readVariables(context, db, appId)), ...(await readAddonVariables(context, db, tenantId, appId)) };
}

function purpose(tenantId: TenantId, appId: AppId, type: AddonType, key: SecretKey): string {
  const workload = type === 'kvstore' ? kvstoreName(tenantId, appId) : `${type}-${tenantId}-${appId}`;
  return `${authSecretName(workload)}:${key}`;
}
