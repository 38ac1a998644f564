import type { Selectable } from 'kysely';
import type { Invitation, Member, Team } from '#shared/core/accounts/accounts.ts';
import { outranks, requireLogin, requireRole } from '#shared/core/accounts/authorization.ts';
import type { Person, Principal } from '#shared/core/accounts/principals.ts';
import type { Context } from '#shared/core/context.ts';
import { toKeysetPage, toPage } from '#shared/core/page.ts';
import { keysetBefore } from '#shared/database/keyset.ts';
import type { Database, Db, Role } from '#shared/database/schema.ts';
import { isUniqueViolation } from '#shared/database/violations.ts';
import { AppError, notFound } from '#shared/errors.ts';
import { checkEmail, emailKey } from '#shared/identity/credentials.ts';
import { type InvitationId, isUuid, type MembershipId, newUuid, type TenantId } from '#shared/ids.ts';
import { hashSecretToken, newSecretToken } from '#shared/secret-token.ts';

const invitationMilliseconds = 7 * 86_400_000;

type MemberRow = Selectable<Database['memberships']>;
type InvitationRow = Selectable<Database['invitations']>;

export function createTeam(context: Context): Team {
  const { db, clock } = context;
  return {
    async listTenants({ userId }, page) {
      const { before, limit } = toKeysetPage(page);
      const rows = await db
        .selectFrom('memberships')
        .innerJoin('tenants', 'tenants.id', 'memberships.tenant_id')
        .select(['memberships.id', 'memberships.role', 'memberships.created_at', 'tenants.id as tenant_id', 'tenants.name'])
        .where('memberships.user_id', '=', userId)
        .where(keysetBefore(before, 'memberships'))
        .orderBy('memberships.created_at', 'desc')
        .orderBy('memberships.id', 'desc')
        .limit(limit)
        .execute();
      return toPage(rows, page.limit, (row) => ({ id: row.tenant_id, name: row.name, role: row.role }));
    },

    async listMembers({ tenantId }, page) {
      const { before, limit } = toKeysetPage(page);
      const rows = await db
        .selectFrom('memberships')
        .selectAll()
        .where('tenant_id', '=', tenantId)
        .where(keysetBefore(before))
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .limit(limit)
        .execute();
      return toPage(rows, page.limit, toMember);
    },

    async changeRole(principal, id, role) {
      requireLogin(principal);
      return changeTeam(db, principal.tenantId, async (trx) => {
        const actor = await requireMember(trx, principal);
        requireRole(actor, 'admin');
        const member = await findMember(trx, principal.tenantId, id);
        checkReach(actor, member.role);
        checkReach(actor, role);
        if (member.role === 'owner' && role !== 'owner') await checkOtherOwner(trx, member);
        const changed = { ...member, role };
        await trx.updateTable('memberships').set({ role }).where('id', '=', member.id).execute();
        // What they invited to, they may not be able to give any more.
        if (outranks(member.role, role)) {
          await trx
            .deleteFrom('invitations')
            .where('tenant_id', '=', member.tenant_id)
            .where('invited_by', '=', member.user_id)
            .execute();
        }
        return toMember(changed);
      });
    },

    async removeMember(principal, id) {
      requireLogin(principal);
      await changeTeam(db, principal.tenantId, async (trx) => {
        const actor = await requireMember(trx, principal);
        const member = await findMember(trx, principal.tenantId, id);
        if (member.user_id !== actor.userId) {
          requireRole(actor, 'admin');
          checkReach(actor, member.role);
        }
        if (member.role === 'owner') await checkOtherOwner(trx, member);
        await trx.deleteFrom('memberships').where('id', '=', member.id).execute();
      });
    },

    async invite(principal, { email: typed, role }) {
      requireLogin(principal);
      requireRole(principal, 'admin');
      checkReach(principal, role);
      const email = checkEmail(typed);
      const token = newSecretToken('paas_inv_');
      const now = clock.now();
      const row = {
        id: newUuid<InvitationId>(),
        tenant_id: principal.tenantId,
        email,
        email_key: emailKey(email),
        role,
        token_hash: await hashSecretToken(token),
        invited_by: principal.userId,
        created_at: now,
        expires_at: new Date(now.getTime() + invitationMilliseconds),
      };
      await changeTeam(db, principal.tenantId, async (trx) => {
        const { tenant_id, email_key } = row;
        const earlier = await trx
          .deleteFrom('invitations')
          .where('tenant_id', '=', tenant_id)
          .where('email_key', '=', email_key)
          .returning('role')
          .executeTakeFirst();
        if (earlier !== undefined) checkReach(principal, earlier.role);
        await trx.insertInto('invitations').values(row).execute();
      });
      return { ...toInvitation(row), token };
    },

    async listInvitations(principal, page) {
      const { before, limit } = toKeysetPage(page);
      requireRole(principal, 'admin');
      const rows = await db
        .selectFrom('invitations')
        .selectAll()
        .where('tenant_id', '=', principal.tenantId)
        .where('expires_at', '>', clock.now())
        .where(keysetBefore(before))
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .limit(limit)
        .execute();
      return toPage(rows, page.limit, toInvitation);
    },

    async withdrawInvitation(principal, id) {
      requireLogin(principal);
      requireRole(principal, 'admin');
      if (!isUuid(id)) throw notFound('invitation');
      const result = await db
        .deleteFrom('invitations')
        .where('tenant_id', '=', principal.tenantId)
        .where('id', '=', id as InvitationId)
        .executeTakeFirst();
      if (result.numDeletedRows === 0n) throw notFound('invitation');
    },

    async acceptInvitation(person, token) {
      requireLogin(person);
      return acceptInvitation(context, person, token);
    },
  };
}

type InvitationGround = Pick<Context, 'db' | 'clock'>;

/** Before there is a user to accept it. @throws AppError as `acceptInvitation` */
export async function checkInvitation({ db, clock }: InvitationGround, email: string, token: string): Promise<void> {
  const row = await db
    .selectFrom('invitations')
    .select('email_key')
    .where('token_hash', '=', await hashSecretToken(token))
    .where('expires_at', '>', clock.now())
    .executeTakeFirst();
  if (row === undefined) throw notFound('invitation');
  checkInvited(row, email);
}

function checkInvited({ email_key }: Pick<InvitationRow, 'email_key'>, email: string): void {
  if (email_key === emailKey(email)) return;
  throw new AppError('forbidden', 'This invitation is for another email address. Log in as the one it was made for.');
}

/** By the one it was made for, once. What fails leaves it open. */
export async function acceptInvitation({ db, clock }: InvitationGround, { userId, email }: Person, token: string) {
  const now = clock.now();
  const tokenHash = await hashSecretToken(token);
  try {
    return await db.transaction().execute(async (trx) => {
      const row = await trx
        .deleteFrom('invitations')
        .where('token_hash', '=', tokenHash)
        .where('expires_at', '>', now)
        .returningAll()
        .executeTakeFirst();
      if (row === undefined) throw notFound('invitation');
      checkInvited(row, email);
      await trx
        .insertInto('memberships')
        .values({ tenant_id: row.tenant_id, user_id: userId, email, role: row.role, created_at: now })
        .execute();
      const tenant = await trx.selectFrom('tenants').select('name').where('id', '=', row.tenant_id).executeTakeFirstOrThrow();
      return { id: row.tenant_id, name: tenant.name, role: row.role };
    });
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw new AppError('conflict', 'You are a member of this team already.', { cause: error });
  }
}

/** One change of a team at a time: two owners who leave at once must not both find the other still there. */
function changeTeam<Result>(db: Db, tenantId: TenantId, change: (trx: Db) => Promise<Result>): Promise<Result> {
  return db.transaction().execute(async (trx) => {
    await trx.selectFrom('tenants').select('id').where('id', '=', tenantId).forNoKeyUpdate().execute();
    return change(trx);
  });
}

/** The principal as they are under the lock: a change that came first may have taken their role. */
async function requireMember(trx: Db, principal: Principal): Promise<Principal> {
  const row = await trx
    .selectFrom('memberships')
    .select('role')
    .where('tenant_id', '=', principal.tenantId)
    .where('user_id', '=', principal.userId)
    .executeTakeFirst();
  if (row === undefined) throw notFound('member');
  return { ...principal, role: row.role };
}

async function findMember(trx: Db, tenantId: TenantId, id: string): Promise<MemberRow> {
  if (!isUuid(id)) throw notFound('member');
  const row = await trx
    .selectFrom('memberships')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('id', '=', id as MembershipId)
    .executeTakeFirst();
  if (row === undefined) throw notFound('member');
  return row;
}

/** Nobody gives, changes or takes a role above their own. */
function checkReach(actor: Principal, role: Role): void {
  if (outranks(role, actor.role)) requireRole(actor, role);
}

async function checkOtherOwner(trx: Db, { tenant_id, id }: MemberRow): Promise<void> {
  const other = await trx
    .selectFrom('memberships')
    .select('id')
    .where('tenant_id', '=', tenant_id)
    .where('role', '=', 'owner')
    .where('id', '!=', id)
    .limit(1)
    .executeTakeFirst();
  if (other === undefined) throw new AppError('conflict', 'A team needs an owner: make another member owner first.');
}

function toMember(row: MemberRow): Member {
  return { id: row.id, userId: row.user_id, email: row.email, role: row.role, createdAt: row.created_at };
}

function toInvitation(row: InvitationRow): Invitation {
  return { id: row.id, email: row.email, role: row.role, createdAt: row.created_at, expiresAt: row.expires_at };
}
