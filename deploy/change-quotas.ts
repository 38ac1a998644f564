import { StartError } from '#deploy/host/start-error.ts';
import { readQuotas } from '#shared/core/accounts/quotas.ts';
import { deleteQuotaChanges, setQuota } from '#shared/core/accounts/quotas-store.ts';
import { findTenant } from '#shared/core/accounts/tenants-store.ts';
import type { Db } from '#shared/database/db.ts';
import type { TenantId } from '#shared/ids.ts';
import { parseQuotas, type QuotaName, quotaNames, quotasMessage } from '#shared/settings/quotas.ts';
import type { Settings } from '#shared/settings/settings.ts';

const usage = 'Usage: npm run quotas -- <tenant id> [apps=20 instances=40 …] [--reset]. `paas teams` shows the ids of tenants.';

/**
 * Changes quotas of one tenant as the arguments say: `<tenant id> [name=number …] [--reset]`. `--reset` takes earlier changes back
 * first.
 * @returns lines with the quotas that the tenant has then
 * @throws StartError for arguments that cannot be used
 */
export async function changeQuotas(db: Db, settings: Pick<Settings, 'quotas'>, args: readonly string[]): Promise<string[]> {
  const [tenant, ...rest] = args;
  if (tenant === undefined || tenant.startsWith('-')) throw new StartError(usage);
  const changes = parseQuotas(rest.filter((each) => each !== '--reset').join(' '));
  if (changes === undefined) throw new StartError(`The arguments ${quotasMessage}. ${usage}`);
  const tenantId = tenant as TenantId;
  const found = await findTenant(db, tenantId);
  if (found === undefined) throw new StartError(`There is no tenant ${tenant}. \`paas teams\` shows the ids of tenants.`);
  await db.transaction().execute(async (trx) => {
    if (rest.includes('--reset')) await deleteQuotaChanges(trx, tenantId);
    for (const [name, amount] of Object.entries(changes)) await setQuota(trx, tenantId, name as QuotaName, amount);
  });
  const quotas = await readQuotas({ settings }, db, tenantId);
  return [`Quotas of ${found.name} (${tenant}):`, ...quotaNames.map((name) => `  ${name}=${quotas[name]}`)];
}
