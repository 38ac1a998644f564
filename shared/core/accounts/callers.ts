import type { FoundMembership } from '#shared/core/accounts/memberships-store.ts';
import { findMembership } from '#shared/core/accounts/memberships-store.ts';
import type { Caller, CallerContext, Principal, VerifiedLogin } from '#shared/core/accounts/principals.ts';
import { checkSignUpIsOpen, createFirstTenant, firstTenantName } from '#shared/core/accounts/tenant-creation.ts';
import type { Db } from '#shared/database/db.ts';
import { AppError } from '#shared/errors.ts';
import type { TenantId, UserId } from '#shared/ids.ts';

/**
 * The principal of a caller, read for logins. The first visit of a user from an outside issuer creates their tenant.
 * @throws AppError `forbidden` when the caller is no member of the requested tenant, or there is no such tenant
 */
export async function resolveCaller(context: CallerContext, caller: Caller): Promise<Principal> {
  if (isPrincipal(caller)) return caller;
  const { userId, requestedTenantId } = caller;
  return (await readPrincipal(context.db, userId, requestedTenantId)) ?? resolveFirstVisit(context, caller);
}

/** API tokens and SSH keys are principals; logins are not until their membership is read. */
export function isPrincipal(caller: Caller): caller is Principal {
  return 'role' in caller;
}

/** A user in a tenant, or in the one they have been a member of longest; undefined when they are no member. */
export async function readPrincipal(db: Db, userId: UserId, tenantId?: string): Promise<Principal | undefined> {
  const found = await findMembership(db, { userId, tenantId: (tenantId as TenantId | undefined) ?? null });
  return found && toPrincipal(userId, found);
}

/** The principal that a membership makes of its user. */
export function toPrincipal(userId: UserId, { email, member_of, role }: FoundMembership): Principal {
  return { userId, email, tenantId: member_of, role };
}

/**
 * For a login without a membership: a first visit from an outside issuer, or a sign-up that was interrupted between the
 * user and the tenant. Where sign-up is closed only an invitation leads into a team, whoever issued the login.
 * @throws AppError `forbidden`, with one answer for "no such tenant" and "not a member of it"
 */
export async function resolveFirstVisit(
  context: CallerContext,
  { userId, email, requestedTenantId }: VerifiedLogin,
): Promise<Principal> {
  if (requestedTenantId !== undefined) throw notAMember();
  await checkSignUpIsOpen(context);
  await createFirstTenant(context.db, { userId, email }, firstTenantName(email));
  const principal = await readPrincipal(context.db, userId);
  if (principal === undefined) throw new AppError('internal', 'The team could not be created.');
  return principal;
}

/** The answer to a request for a tenant that the caller does not belong to. */
export function notAMember(): AppError {
  return new AppError('forbidden', 'You are not a member of this team. GET /v1/tenants lists yours.');
}
