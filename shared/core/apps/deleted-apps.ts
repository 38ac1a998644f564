import type { Caller, CallerContext } from '#shared/core/accounts/principals.ts';
import { type AppAccess, resolveCallerAndApp } from '#shared/core/apps/app-access.ts';
import type { Context } from '#shared/core/context.ts';
import { addSeconds, secondsPerDay } from '#shared/durations.ts';
import { notFound } from '#shared/errors.ts';
import type { AppId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';

const restoreSeconds = limits.app.restoreDays * secondsPerDay;

/** Until when an app that was deleted at `deletedAt` can be restored; then it is purged. */
export function restorableUntil(deletedAt: Date): Date {
  return addSeconds(deletedAt, restoreSeconds);
}

/** Apps that were deleted after this time can be restored. */
export function restorableSince(now: Date): Date {
  return addSeconds(now, -restoreSeconds);
}

/** Key of the wakeup that reports an app's deletion. */
export function deletionKey(appId: AppId): string {
  return `deletion:${appId}`;
}

/** An app of the caller's tenant, active or deleted, as long as it can be restored. @throws AppError `not_found` */
export async function requireAppOrDeleted(
  context: CallerContext & Pick<Context, 'clock'>,
  caller: Caller,
  app: string,
): Promise<AppAccess> {
  const { principal, row } = await resolveCallerAndApp(context, caller, app);
  if (row === undefined || row.tenant_id !== principal.tenantId) throw notFound('app');
  if (row.deleted_at !== null && row.deleted_at <= restorableSince(context.clock.now())) throw notFound('app');
  return { principal, row };
}
