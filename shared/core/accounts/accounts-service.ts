import { sql } from 'kysely';
import type { Accounts } from '#shared/core/accounts/accounts.ts';
import { readMembership, readMembershipAndApp } from '#shared/core/accounts/memberships.ts';
import type { Principal, Tenant } from '#shared/core/accounts/principals.ts';
import { acceptInvitation, checkInvitation } from '#shared/core/accounts/team-service.ts';
import type { Context } from '#shared/core/context.ts';
import type { Db } from '#shared/database/schema.ts';
import { AppError } from '#shared/errors.ts';
import type { IdentityUser } from '#shared/identity/identity.ts';
import { newTenantId, type TenantId } from '#shared/ids.ts';

export function createAccounts(context: Context): Accounts {
  const { db, identity } = context;
  return {
    async signUp({ email, password, tenantName, source, invitation }) {
      if (invitation === undefined) await checkSignUpIsOpen(context);
      else await checkInvitation(context, email, invitation);
      const user = await identity.createUser(email, password, source);
      if (invitation !== undefined) {
        const { id, name } = await acceptInvitation(context, { userId: user.id, email: user.email }, invitation);
        return { user, tenant: { id, name }, tokens: await identity.issueTokens(user) };
      }
      const tenant = await createTenant(db, user, tenantName ?? defaultTenantName(user.email));
      return { user, tenant, tokens: await identity.issueTokens(user) };
    },

    async resolvePrincipal({ id, email }, tenantId, app) {
      const asked = tenantId as TenantId | undefined;
      const member = await (app === undefined ? readMembership(db, id, asked) : readMembershipAndApp(db, id, asked, app));
      if (member !== undefined) return member;
      // "No such team" and "not yours" are one answer.
      if (asked !== undefined) throw notAMember();
      // A first visit from an outside issuer, or a sign-up that was cut off between the user and the tenant. Where sign-up
      // is closed only an invitation leads into a team, whoever vouches for the user.
      await checkSignUpIsOpen(context);
      await createTenant(db, { id, email }, defaultTenantName(email));
      const made = await readMembership(db, id);
      if (made === undefined) throw new AppError('internal', 'The team could not be made.');
      return made;
    },

    async readTenant(principal: Principal) {
      return readTenantById(db, principal.tenantId);
    },
  };
}

export function notAMember(): AppError {
  return new AppError('forbidden', 'You are not a member of this team. GET /v1/tenants lists yours.');
}

/** Without a sandbox code runs with the operator's rights: then only the first user, who is the operator, may sign up. */
async function checkSignUpIsOpen({ db, settings, platform }: Context): Promise<void> {
  if (settings.signup === 'closed')
    throw new AppError('forbidden', 'Sign-up is closed on this platform. Ask for an invitation to a team.');
  if (platform.capabilities.sandbox) return;
  const operator = await db.selectFrom('tenants').select('id').limit(1).executeTakeFirst();
  if (operator === undefined) return;
  throw new AppError(
    'forbidden',
    'Sign-up is closed: this platform has no sandbox to keep tenants apart. Ask its operator for an invitation.',
  );
}

/** The tenant of a new user; two first visits at once make one. */
async function createTenant(db: Db, user: IdentityUser, name: string): Promise<Tenant> {
  return db.transaction().execute(async (trx) => {
    await sql`select pg_advisory_xact_lock(hashtextextended(${`tenant of ${user.id}`}, 0))`.execute(trx);
    const existing = await readMembership(trx, user.id);
    if (existing !== undefined) return readTenantById(trx, existing.tenantId);
    const tenant = { id: newTenantId(), name };
    await trx.insertInto('tenants').values(tenant).execute();
    await trx
      .insertInto('memberships')
      .values({ tenant_id: tenant.id, user_id: user.id, email: user.email, role: 'owner' })
      .execute();
    return tenant;
  });
}

function readTenantById(db: Db, tenantId: TenantId): Promise<Tenant> {
  return db.selectFrom('tenants').select(['id', 'name']).where('id', '=', tenantId).executeTakeFirstOrThrow();
}

function defaultTenantName(email: string): string {
  return email.split('@')[0] ?? email;
}
