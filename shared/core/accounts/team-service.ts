import type { Invitation, Member, Team } from '#shared/core/accounts/accounts.ts';
import { outranks, requireLogin, requireRole } from '#shared/core/accounts/authorization.ts';
import { checkSession, resolveCaller } from '#shared/core/accounts/callers.ts';
import { acceptInvitation } from '#shared/core/accounts/invitations.ts';
import {
  deleteInvitation,
  deleteInvitationOf,
  deleteInvitationsBy,
  type InvitationRow,
  insertInvitation,
  listInvitations,
} from '#shared/core/accounts/invitations-store.ts';
import {
  deleteMembership,
  findMembership,
  hasOtherOwner,
  listMembers,
  listTenantsOf,
  type MembershipRow,
  readMembershipById,
  setRole,
} from '#shared/core/accounts/memberships-store.ts';
import type { Principal, Role } from '#shared/core/accounts/principals.ts';
import { lockTenant } from '#shared/core/accounts/tenants-store.ts';
import type { Context } from '#shared/core/context.ts';
import { toKeysetPage, toPage } from '#shared/core/page.ts';
import type { Db } from '#shared/database/db.ts';
import { addSeconds, secondsPerDay } from '#shared/durations.ts';
import { AppError, notFound } from '#shared/errors.ts';
import { checkEmail, emailKey } from '#shared/identity/credentials.ts';
import { type InvitationId, isUuid, type MembershipId, newUuid, type TenantId } from '#shared/ids.ts';
import { hashSecretToken, newSecretToken } from '#shared/secret-token.ts';

const invitationSeconds = 7 * secondsPerDay;

/** The tenants of a user, their members and invitations. */
export function createTeam(context: Context): Team {
  const { db, clock } = context;
  return {
    async listTenants(caller, page) {
      const { userId } = await resolveCaller(context, caller);
      const rows = await listTenantsOf(db, { userId, ...toKeysetPage(page) });
      return toPage(rows, page.limit, (row) => ({ id: row.tenant_id, name: row.name, role: row.role }));
    },

    async listMembers(caller, page) {
      const { tenantId } = await resolveCaller(context, caller);
      return toPage(await listMembers(db, { tenantId, ...toKeysetPage(page) }), page.limit, toMember);
    },

    async changeRole(caller, id, role) {
      const principal = await resolveCaller(context, caller);
      requireLogin(principal);
      return changeTeam(db, principal.tenantId, async (trx) => {
        const actor = await requireMember(trx, principal);
        requireRole(actor, 'admin');
        const member = await findMember(trx, principal.tenantId, id);
        checkReach(actor, member.role);
        checkReach(actor, role);
        if (member.role === 'owner' && role !== 'owner') await checkOtherOwner(trx, member);
        await setRole(trx, member.id, role);
        // They may no longer be allowed to give the roles of their open invitations.
        if (outranks(member.role, role)) await deleteInvitationsBy(trx, member.tenant_id, member.user_id);
        return toMember({ ...member, role });
      });
    },

    async removeMember(caller, id) {
      const principal = await resolveCaller(context, caller);
      requireLogin(principal);
      await changeTeam(db, principal.tenantId, async (trx) => {
        const actor = await requireMember(trx, principal);
        const member = await findMember(trx, principal.tenantId, id);
        if (member.user_id !== actor.userId) {
          requireRole(actor, 'admin');
          checkReach(actor, member.role);
        }
        if (member.role === 'owner') await checkOtherOwner(trx, member);
        await deleteMembership(trx, member.id);
      });
    },

    async invite(caller, { email: typed, role }) {
      const principal = await resolveCaller(context, caller);
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
        expires_at: addSeconds(now, invitationSeconds),
      };
      await changeTeam(db, principal.tenantId, async (trx) => {
        const earlierRole = await deleteInvitationOf(trx, row.tenant_id, row.email_key);
        if (earlierRole !== undefined) checkReach(principal, earlierRole);
        await insertInvitation(trx, row);
      });
      return { ...toInvitation(row), token };
    },

    async listInvitations(caller, page) {
      const principal = await resolveCaller(context, caller);
      requireRole(principal, 'admin');
      const query = { tenantId: principal.tenantId, now: clock.now(), ...toKeysetPage(page) };
      return toPage(await listInvitations(db, query), page.limit, toInvitation);
    },

    async withdrawInvitation(caller, id) {
      const principal = await resolveCaller(context, caller);
      requireLogin(principal);
      requireRole(principal, 'admin');
      const deleted = isUuid(id) && (await deleteInvitation(db, principal.tenantId, id as InvitationId));
      if (!deleted) throw notFound('invitation');
    },

    async acceptInvitation(person, token) {
      requireLogin(person);
      await checkSession(db, person);
      return acceptInvitation(context, person, token);
    },
  };
}

/** Changes of one team run one after the other: of two owners who leave at the same time, the second finds no other owner. */
function changeTeam<Result>(db: Db, tenantId: TenantId, change: (trx: Db) => Promise<Result>): Promise<Result> {
  return db.transaction().execute(async (trx) => {
    await lockTenant(trx, tenantId);
    return change(trx);
  });
}

/** The principal with the role they have under the lock: an earlier change may have lowered it. */
async function requireMember(trx: Db, principal: Principal): Promise<Principal> {
  const found = await findMembership(trx, principal);
  if (found === undefined) throw notFound('member');
  return { ...principal, role: found.role };
}

async function findMember(trx: Db, tenantId: TenantId, id: string): Promise<MembershipRow> {
  const row = isUuid(id) ? await readMembershipById(trx, tenantId, id as MembershipId) : undefined;
  if (row === undefined) throw notFound('member');
  return row;
}

/** Nobody gives, changes or removes a role above their own. */
function checkReach(actor: Principal, role: Role): void {
  if (outranks(role, actor.role)) requireRole(actor, role);
}

async function checkOtherOwner(trx: Db, member: MembershipRow): Promise<void> {
  if (await hasOtherOwner(trx, member)) return;
  throw new AppError('conflict', 'A team needs an owner. Make another member an owner first.');
}

function toMember(row: MembershipRow): Member {
  return { id: row.id, userId: row.user_id, email: row.email, role: row.role, createdAt: row.created_at };
}

function toInvitation(row: InvitationRow): Invitation {
  return { id: row.id, email: row.email, role: row.role, createdAt: row.created_at, expiresAt: row.expires_at };
}
