import { requireRole } from '#shared/core/accounts/authorization.ts';
import { isPrincipal, resolveFirstVisit, toPrincipal } from '#shared/core/accounts/callers.ts';
import type { Caller, CallerContext, Principal } from '#shared/core/accounts/principals.ts';
import { type AppRow, findApp, findMembershipAndApp } from '#shared/core/apps/apps-store.ts';
import { notFound } from '#shared/errors.ts';
import type { TenantId } from '#shared/ids.ts';

/** A caller in the tenant they act for, and the app they asked for. */
export interface AppAccess {
  principal: Principal;
  row: AppRow;
}

/**
 * The principal of a caller and whatever app has the id or name, also another tenant's or a deleted one: who calls this
 * checks that. A login's membership and the app are read in one statement.
 */
export async function resolveCallerAndApp(
  context: CallerContext,
  caller: Caller,
  app: string,
): Promise<{ principal: Principal; row: AppRow | undefined }> {
  const { db } = context;
  if (isPrincipal(caller)) return { principal: caller, row: await findApp(db, app) };
  const tenantId = (caller.requestedTenantId as TenantId | undefined) ?? null;
  const { userId, sessionId = null } = caller;
  const found = await findMembershipAndApp(db, { userId, tenantId, sessionId, app });
  if (found !== undefined) return { principal: toPrincipal(caller, found.membership), row: found.app };
  return { principal: await resolveFirstVisit(context, caller), row: await findApp(db, app) };
}

/**
 * An active app of the caller's tenant.
 * @throws AppError `not_found`, with one answer for another tenant's app, a deleted one and one that never was
 */
export async function requireApp(context: CallerContext, caller: Caller, app: string): Promise<AppAccess> {
  const { principal, row } = await resolveCallerAndApp(context, caller, app);
  if (row === undefined || row.tenant_id !== principal.tenantId || row.deleted_at !== null) throw notFound('app');
  return { principal, row };
}

/** Like `requireApp`, for changes to the app. @throws AppError `forbidden` to viewers */
export async function requireAppToChange(context: CallerContext, caller: Caller, app: string): Promise<AppAccess> {
  const access = await requireApp(context, caller, app);
  requireRole(access.principal, 'developer');
  return access;
}
