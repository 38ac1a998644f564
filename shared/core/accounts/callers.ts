import type { FoundMembership } from '#shared/core/accounts/memberships-store.ts';
import { findMembership } from '#shared/core/accounts/memberships-store.ts';
import type { Caller, CallerContext, Person, Principal, VerifiedLogin } from '#shared/core/accounts/principals.ts';
import { checkSignUpIsOpen, createFirstTenant, firstTenantName } from '#shared/core/accounts/tenant-creation.ts';
import type { Db } from '#shared/database/db.ts';
import { AppError } from '#shared/errors.ts';
import { hasSessionEnded } from '#shared/identity/ended-sessions-store.ts';
import type { TenantId, UserId } from '#shared/ids.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';

/**
 * The principal of a caller, read for logins. The first visit of a user from an outside issuer creates their tenant.
 * @throws AppError `forbidden` when the caller is no member of the requested tenant, or there is no such tenant; `unauthorized` when
 * their session has ended
 */
export async function resolveCaller(context: CallerContext, caller: Caller): Promise<Principal> {
  if (isPrincipal(caller)) return caller;
  const { userId, sessionId = null } = caller;
  const tenantId = (caller.requestedTenantId as TenantId | undefined) ?? null;
  const found = await findMembership(context.db, { userId, tenantId, sessionId });
  return found === undefined ? resolveFirstVisit(context, caller) : toPrincipal(caller, found);
}

/** API tokens and SSH keys are principals; logins are not until their membership is read. */
export function isPrincipal(caller: Caller): caller is Principal {
  return 'role' in caller;
}

/** A user in a tenant, or in the one they have been a member of longest; undefined when they are no member. */
export async function readPrincipal(db: Db, userId: UserId, tenantId?: string): Promise<Principal | undefined> {
  const found = await findMembership(db, { userId, tenantId: (tenantId as TenantId | undefined) ?? null });
  return found && toPrincipal({ userId }, found);
}

/** The principal that a membership makes of its user. @throws AppError `unauthorized` when their session has ended */
export function toPrincipal(
  { userId, sessionId }: Pick<VerifiedLogin, 'userId' | 'sessionId'>,
  { email, member_of, role, session_ended }: FoundMembership,
): Principal {
  if (session_ended) throw sessionEnded();
  return { userId, email, tenantId: member_of, role, ...omitUndefined({ sessionId }) };
}

/** For operations that read no membership. @throws AppError `unauthorized` when the session of the person has ended */
export async function checkSession(db: Db, { sessionId }: Person): Promise<void> {
  if (sessionId !== undefined && (await hasSessionEnded(db, sessionId))) throw sessionEnded();
}

function sessionEnded(): AppError {
  return new AppError('unauthorized', 'The session has ended. Log in again.');
}

/**
 * For a login without a membership: a first visit from an outside issuer, or a sign-up that was interrupted between the
 * user and the tenant. Where sign-up is closed only an invitation leads into a team, whoever issued the login.
 * @throws AppError `forbidden`, with one answer for "no such tenant" and "not a member of it"
 */
export async function resolveFirstVisit(context: CallerContext, login: VerifiedLogin): Promise<Principal> {
  const { userId, email, requestedTenantId } = login;
  await checkSession(context.db, login);
  if (requestedTenantId !== undefined) throw notAMember();
  await checkSignUpIsOpen(context);
  await createFirstTenant(context.db, { userId, email }, firstTenantName(email));
  const found = await findMembership(context.db, { userId, tenantId: null });
  if (found === undefined) throw new AppError('internal', 'The team could not be created.');
  return toPrincipal(login, found);
}

/** The answer to a request for a tenant that the caller does not belong to. */
export function notAMember(): AppError {
  return new AppError('forbidden', 'You are not a member of this team. GET /v1/tenants lists yours.');
}
