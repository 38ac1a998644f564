import type { SignUpRequest } from '#shared/core/accounts/accounts.ts';
import { findMembership } from '#shared/core/accounts/memberships-store.ts';
import type { Tenant } from '#shared/core/accounts/principals.ts';
import { readTenant } from '#shared/core/accounts/tenants-store.ts';
import type { Context } from '#shared/core/context.ts';
import { AppError } from '#shared/errors.ts';
import { emailKey } from '#shared/identity/credentials.ts';
import type { IdentityUser, LoginOrigin, TokenSet } from '#shared/identity/identity.ts';
import type { UserId } from '#shared/ids.ts';

const unknownOrigin: LoginOrigin = { source: '', client: '' };

/**
 * What a sign-up answered that was sent before, for whoever has its password: the user and the tenant, with new tokens. A wrong
 * password counts as a failed login.
 * @returns undefined when the user does not exist
 * @throws AppError `conflict` for another password
 */
export async function resumeSignUp(
  { db, identity }: Pick<Context, 'db' | 'identity'>,
  { id, email, password, origin = unknownOrigin }: SignUpRequest & { id: UserId },
): Promise<{ user: IdentityUser; tenant: Tenant; tokens: TokenSet } | undefined> {
  const member = await findMembership(db, { userId: id, tenantId: null });
  if (member === undefined || emailKey(member.email) !== emailKey(email)) return undefined;
  try {
    const tokens = await identity.logIn(email, password, origin);
    return { user: { id, email: member.email }, tenant: await readTenant(db, member.member_of), tokens };
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'unauthorized') throw error;
    throw new AppError('conflict', 'A user with this email already exists. Log in instead.', { cause: error });
  }
}
