import { findMembership, insertMembership, lockFirstMembership } from '#shared/core/accounts/memberships-store.ts';
import type { CallerContext, Person, Tenant } from '#shared/core/accounts/principals.ts';
import { insertTenant, readFirstTenantId, readTenant } from '#shared/core/accounts/tenants-store.ts';
import type { Db } from '#shared/database/db.ts';
import { AppError } from '#shared/errors.ts';
import { newTenantId } from '#shared/ids.ts';

/** Also for whoever is invited. @throws AppError `forbidden` where nobody can sign up */
export function checkAccountsAreGiven({ signup }: CallerContext['settings']): void {
  if (signup === 'closed')
    throw new AppError('forbidden', 'Sign-up is closed on this platform. Ask its operator for an account.');
}

/**
 * Without a sandbox, code runs with the operator's rights: then only the first user, who is the operator, may sign up.
 * @throws AppError `forbidden` when sign-up is closed or by invitation
 */
export async function checkSignUpIsOpen({ db, settings, platform }: CallerContext): Promise<void> {
  checkAccountsAreGiven(settings);
  if (settings.signup === 'invitation')
    throw new AppError('forbidden', 'Sign-up on this platform is by invitation. Ask a member of a team to invite you.');
  if (platform.capabilities.sandbox || (await readFirstTenantId(db)) === undefined) return;
  throw new AppError(
    'forbidden',
    'Sign-up is closed: this platform has no sandbox to keep tenants apart. Ask its operator for an invitation.',
  );
}

/** The first tenant of a user, who owns it. Two first visits at the same time create one tenant. */
export async function createFirstTenant(db: Db, { userId, email }: Person, name: string): Promise<Tenant> {
  return db.transaction().execute(async (trx) => {
    await lockFirstMembership(trx, userId);
    const existing = await findMembership(trx, { userId, tenantId: null });
    if (existing !== undefined) return readTenant(trx, existing.member_of);
    const tenant = { id: newTenantId(), name };
    await insertTenant(trx, tenant);
    await insertMembership(trx, { tenant_id: tenant.id, user_id: userId, email, role: 'owner' });
    return tenant;
  });
}

/** The name of a tenant whose user has not chosen one. */
export function firstTenantName(email: string): string {
  return email.split('@')[0] ?? email;
}
