import { type InvitationRow, readInvitation, takeInvitation } from '#shared/core/accounts/invitations-store.ts';
import { insertMembership } from '#shared/core/accounts/memberships-store.ts';
import type { Person, Role, Tenant } from '#shared/core/accounts/principals.ts';
import { readTenant } from '#shared/core/accounts/tenants-store.ts';
import type { Context } from '#shared/core/context.ts';
import { isUniqueViolation } from '#shared/database/violations.ts';
import { AppError, notFound } from '#shared/errors.ts';
import { emailKey } from '#shared/identity/credentials.ts';
import { hashSecretToken } from '#shared/secret-token.ts';

/** What accepting an invitation needs. */
type InvitationContext = Pick<Context, 'db' | 'clock'>;

/** For a sign-up, before there is a user who could accept it. @throws AppError as `acceptInvitation` */
export async function checkInvitation({ db, clock }: InvitationContext, email: string, token: string): Promise<void> {
  const row = await readInvitation(db, await hashSecretToken(token), clock.now());
  if (row === undefined) throw notFound('invitation');
  checkAddressee(row, email);
}

/**
 * Makes its addressee a member. A token is accepted once; a refused attempt leaves the invitation open.
 * @throws AppError `not_found`, `forbidden` or `conflict`, see `Team.acceptInvitation`
 */
export async function acceptInvitation(
  { db, clock }: InvitationContext,
  { userId, email }: Person,
  token: string,
): Promise<Tenant & { role: Role }> {
  const now = clock.now();
  const tokenHash = await hashSecretToken(token);
  try {
    return await db.transaction().execute(async (trx) => {
      const row = await takeInvitation(trx, tokenHash, now);
      if (row === undefined) throw notFound('invitation');
      checkAddressee(row, email);
      const { tenant_id, role } = row;
      await insertMembership(trx, { tenant_id, user_id: userId, email, role, created_at: now });
      return { ...(await readTenant(trx, tenant_id)), role };
    });
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw new AppError('conflict', 'You are a member of this team already.', { cause: error });
  }
}

function checkAddressee({ email_key }: Pick<InvitationRow, 'email_key'>, email: string): void {
  if (email_key === emailKey(email)) return;
  throw new AppError('forbidden', 'This invitation is for another email address. Log in with the address it was sent to.');
}
