import { deleteOldBuildStarts, insertBuildStart, readQuotaChanges } from '#shared/core/accounts/quotas-store.ts';
import { lockTenant, readFirstTenantId } from '#shared/core/accounts/tenants-store.ts';
import type { Context } from '#shared/core/context.ts';
import { counted } from '#shared/counted.ts';
import type { Db } from '#shared/database/db.ts';
import { addSeconds, secondsPerHour } from '#shared/durations.ts';
import { AppError } from '#shared/errors.ts';
import type { TenantId } from '#shared/ids.ts';
import { operatorQuotas, type QuotaName, type Quotas } from '#shared/settings/quotas.ts';

/** What checking quotas needs. */
export interface QuotaContext {
  settings: Pick<Context['settings'], 'quotas'>;
}

/** The limits of a tenant: those of the settings, none for the operator's own, and what the operator has changed for it. */
export async function readQuotas({ settings }: QuotaContext, db: Db, tenantId: TenantId): Promise<Quotas> {
  const base = (await readFirstTenantId(db)) === tenantId ? operatorQuotas : settings.quotas;
  return { ...base, ...(await readQuotaChanges(db, tenantId)) };
}

/** How much of a quota a tenant uses, and would use after a change. */
export interface QuotaUse {
  used: number;
  wanted: number;
}

/**
 * Checks a change against a quota, in the transaction that makes it. Changes of one tenant that are checked run one after the other, so
 * that two at once do not exceed it. A transaction that locks apps too locks them before.
 * @param measure counts under the lock
 * @throws AppError `forbidden` when the change uses more than before, and more than the quota
 */
export async function requireQuota(
  context: QuotaContext,
  trx: Db,
  tenantId: TenantId,
  name: QuotaName,
  measure: () => Promise<QuotaUse>,
): Promise<void> {
  await lockTenant(trx, tenantId);
  const { used, wanted } = await measure();
  const limit = (await readQuotas(context, trx, tenantId))[name];
  if (wanted > limit && wanted > used) throw quotaReached(name, limit, { used, wanted });
}

/**
 * Counts a build of the tenant.
 * @throws AppError `forbidden` when it has started as many in the last hour as it may
 */
export async function requireBuildQuota(
  context: QuotaContext & Pick<Context, 'clock'>,
  trx: Db,
  tenantId: TenantId,
): Promise<void> {
  const now = context.clock.now();
  await requireQuota(context, trx, tenantId, 'builds_per_hour', async () => {
    const used = await deleteOldBuildStarts(trx, tenantId, addSeconds(now, -secondsPerHour));
    return { used, wanted: used + 1 };
  });
  await insertBuildStart(trx, tenantId, now);
}

/** The error that says what the quota is and what to do. */
export function quotaReached(name: QuotaName, limit: number, use: QuotaUse): AppError {
  return new AppError('forbidden', messages[name](limit, use));
}

const ask = 'ask the operator of the platform for more.';

const messages: Readonly<Record<QuotaName, (limit: number, use: QuotaUse) => string>> = {
  apps: (limit, { used }) => `Your plan allows ${counted(limit, 'app')}; this team has ${used}. Delete one, or ${ask}`,
  instances: (limit, { wanted }) =>
    `Your plan allows ${counted(limit, 'instance')}; this team would have ${wanted}. Scale down with \`paas ps:scale\`, or ${ask}`,
  memory_mib: (limit, { wanted }) =>
    `Your plan allows instances with ${limit} MiB of memory; this team's would have ${wanted} MiB. Scale down with \`paas ps:scale\`, or ${ask}`,
  builds_per_hour: (limit, { used }) =>
    `Your plan allows ${counted(limit, 'build')} an hour; this team has started ${used} in the last hour. Try again later, or ${ask}`,
  kvstores: (limit, { used }) =>
    `Your plan allows ${counted(limit, 'key-value store')}; this team has ${used}. Remove one, or ${ask}`,
  kvstore_memory_mib: (limit, { wanted }) =>
    `Your plan allows key-value stores with ${limit} MiB of memory; this team's would have ${wanted} MiB. Choose a smaller plan, or ${ask}`,
  databases: (limit, { used }) => `Your plan allows ${counted(limit, 'database')}; this team has ${used}. Remove one, or ${ask}`,
};
