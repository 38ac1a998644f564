/** The secrets of an add-on, which are sealed in its row. The app gets them, and whoever may read the app's variables. */
import type { AddonRow } from '#shared/core/addons/addons-store.ts';
import type { AppRow } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import type { AppId, TenantId } from '#shared/ids.ts';
import { authSecretName, kvstoreName } from '#shared/names.ts';
import type { AddonCredentials, AddonType } from '#shared/platform/addons.ts';

/** 128 random bits in hexadecimal, which need no escaping in a URL. */
export function newAddonPassword(): string {
  return crypto.getRandomValues(new Uint8Array(16)).toHex();
}

type SecretKey = 'password' | 'credentials';

interface AddonSecret {
  type: AddonType;
  key: SecretKey;
  value: string;
}

/** For the column `key` of the add-on's row. */
export function sealAddonSecret(
  { secrets }: Pick<Context, 'secrets'>,
  app: Pick<AppRow, 'id' | 'tenant_id'>,
  { type, key, value }: AddonSecret,
): Promise<string> {
  return secrets.seal(value, purpose(app.tenant_id, app.id, type, key));
}

/** The password that the servers shall accept. */
export function openAddonPassword({ secrets }: Pick<Context, 'secrets'>, tenantId: TenantId, row: AddonRow): Promise<string> {
  return secrets.open(row.password, purpose(tenantId, row.app_id, row.addon_type, 'password'));
}

/** Undefined until its servers have been created. */
export async function openAddonCredentials(
  { secrets }: Pick<Context, 'secrets'>,
  tenantId: TenantId,
  row: AddonRow,
): Promise<AddonCredentials | undefined> {
  if (row.credentials === null) return undefined;
  const opened = await secrets.open(row.credentials, purpose(tenantId, row.app_id, row.addon_type, 'credentials'));
  return JSON.parse(opened) as AddonCredentials;
}

function purpose(tenantId: TenantId, appId: AppId, type: AddonType, key: SecretKey): string {
  const workload = type === 'kvstore' ? kvstoreName(tenantId, appId) : `${type}-${tenantId}-${appId}`;
  return `${authSecretName(workload)}:${key}`;
}
