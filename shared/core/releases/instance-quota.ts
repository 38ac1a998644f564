import { requireQuota } from '#shared/core/accounts/quotas.ts';
import type { Context } from '#shared/core/context.ts';
import { type DeployRun, describeWhatServes, type Verdict } from '#shared/core/releases/deploy-run.ts';
import { countInstances } from '#shared/core/releases/instances-store.ts';
import type { Db } from '#shared/database/db.ts';
import { AppError } from '#shared/errors.ts';
import type { TenantId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';

const memoryMebibytes = limits.app.memoryBytes / 1024 / 1024;

/** The memory that so many instances may use. */
export function memoryOf(instances: number): number {
  return instances * memoryMebibytes;
}

/**
 * Checks the number of instances, and their memory.
 * @param measure counts before and after the change, under the tenant's lock
 * @throws AppError `forbidden`
 */
export async function requireInstances(
  context: Pick<Context, 'settings'>,
  trx: Db,
  tenantId: TenantId,
  measure: () => Promise<{ used: number; wanted: number }>,
): Promise<void> {
  await requireQuota(context, trx, tenantId, 'instances', measure);
  await requireQuota(context, trx, tenantId, 'memory_mib', async () => {
    const { used, wanted } = await measure();
    return { used: memoryOf(used), wanted: memoryOf(wanted) };
  });
}

/** Why the release may not be rolled out: the tenant would have more instances than it may. Undefined when it may. */
export async function refuseTooManyInstances({ context, app, deploy }: DeployRun): Promise<Verdict | undefined> {
  const { tenant_id: tenantId } = app;
  try {
    await context.db.transaction().execute((trx) =>
      requireInstances(context, trx, tenantId, async () => ({
        used: await countInstances(trx, tenantId, deploy.id),
        wanted: await countInstances(trx, tenantId),
      })),
    );
    return undefined;
  } catch (error) {
    if (!(error instanceof AppError && error.code === 'forbidden')) throw error;
    const lines = [` !     ${error.message}`, describeWhatServes(app.current_release_id === null)];
    return { status: 'failed', error: error.message, failure: 'boot', lines };
  }
}
