import { type Generated, type RawBuilder, type Selectable, sql } from 'kysely';
import type { Role, Tenant } from '#shared/core/accounts/principals.ts';
import type { CreatedAt, Db, Tables } from '#shared/database/db.ts';
import { type KeysetPage, keysetBefore } from '#shared/database/keyset.ts';
import { prepare } from '#shared/database/prepared.ts';
import { isSessionEnded } from '#shared/identity/ended-sessions-store.ts';
import type { MembershipId, SessionId, TenantId, UserId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    memberships: {
      id: Generated<MembershipId>;
      tenant_id: TenantId;
      user_id: UserId;
      /** As the identity provider last reported it; shown to others of the tenant. */
      email: string;
      role: Role;
      created_at: CreatedAt;
    };
  }
}

export type MembershipRow = Selectable<Tables['memberships']>;

/** Whose membership is read, and in which tenant. */
export interface MembershipQuery {
  userId: UserId;
  /** Null for the tenant they have been a member of longest. */
  tenantId: TenantId | null;
  /** Of the caller; null for callers without a session. */
  sessionId: SessionId | null;
}

/** `member_of` is the tenant's id; columns of other tables can be selected beside these. */
export interface FoundMembership {
  email: string;
  member_of: TenantId;
  role: Role;
  /** Whether the caller's session has ended: then their access token is refused. */
  session_ended: boolean;
}

const findOne = prepare<MembershipQuery, FoundMembership>('find-member', (db, value) => selectMembership(db, value).compile());

/** Undefined when the user is no member of the tenant, or of any. */
export async function findMembership(
  db: Db,
  { userId, tenantId, sessionId = null }: Omit<MembershipQuery, 'sessionId'> & { sessionId?: SessionId | null | undefined },
): Promise<FoundMembership | undefined> {
  const [row] = await findOne.execute(db, { userId, tenantId, sessionId });
  return row;
}

/** The query of `findMembership`, for stores that join it with a table of their own. */
export function selectMembership(
  db: Db,
  value: <Name extends keyof MembershipQuery>(name: Name) => RawBuilder<MembershipQuery[Name]>,
) {
  const tenantId = value('tenantId');
  return db
    .selectFrom('memberships as member')
    .select(['member.email', 'member.tenant_id as member_of', 'member.role'])
    .select(isSessionEnded(value('sessionId')).as('session_ended'))
    .where('member.user_id', '=', value('userId'))
    .where(sql<boolean>`(${tenantId}::text is null or member.tenant_id = ${tenantId})`)
    .orderBy('member.created_at')
    .orderBy('member.tenant_id')
    .limit(1);
}

/** @throws a unique violation when the user is a member already */
export async function insertMembership(
  db: Db,
  row: Pick<MembershipRow, 'tenant_id' | 'user_id' | 'email' | 'role'> & { created_at?: Date },
): Promise<void> {
  await db.insertInto('memberships').values(row).execute();
}

/** Only one transaction at a time makes the first tenant of a user; the lock ends with the transaction. */
export async function lockFirstMembership(trx: Db, userId: UserId): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`tenant of ${userId}`}, 0))`.execute(trx);
}

/** Undefined for a membership of another tenant, too. */
export async function readMembershipById(db: Db, tenantId: TenantId, id: MembershipId): Promise<MembershipRow | undefined> {
  return db.selectFrom('memberships').selectAll().where('tenant_id', '=', tenantId).where('id', '=', id).executeTakeFirst();
}

/** A tenant's members, newest first. */
export async function listMembers(
  db: Db,
  { tenantId, before, limit }: KeysetPage & { tenantId: TenantId },
): Promise<MembershipRow[]> {
  return db
    .selectFrom('memberships')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where(keysetBefore(before))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
}

/** A user's tenants with their role in each, newest membership first. `id` and `created_at` are the membership's. */
export async function listTenantsOf(
  db: Db,
  { userId, before, limit }: KeysetPage & { userId: UserId },
): Promise<(Pick<MembershipRow, 'id' | 'role' | 'created_at' | 'tenant_id'> & Pick<Tenant, 'name'>)[]> {
  return db
    .selectFrom('memberships')
    .innerJoin('tenants', 'tenants.id', 'memberships.tenant_id')
    .select(['memberships.id', 'memberships.role', 'memberships.created_at', 'memberships.tenant_id', 'tenants.name'])
    .where('memberships.user_id', '=', userId)
    .where(keysetBefore(before, 'memberships'))
    .orderBy('memberships.created_at', 'desc')
    .orderBy('memberships.id', 'desc')
    .limit(limit)
    .execute();
}

/** Changes the role of a member. */
export async function setRole(db: Db, id: MembershipId, role: Role): Promise<void> {
  await db.updateTable('memberships').set({ role }).where('id', '=', id).execute();
}

/** In each of their tenants. */
export async function setEmailOf(db: Db, userId: UserId, email: string): Promise<void> {
  await db.updateTable('memberships').set({ email }).where('user_id', '=', userId).execute();
}

/** The member's API tokens and open invitations of this tenant are deleted with it, by foreign keys. */
export async function deleteMembership(db: Db, id: MembershipId): Promise<void> {
  await db.deleteFrom('memberships').where('id', '=', id).execute();
}

/** Whether the tenant has an owner besides this membership. */
export async function hasOtherOwner(db: Db, { tenant_id, id }: Pick<MembershipRow, 'tenant_id' | 'id'>): Promise<boolean> {
  const other = await db
    .selectFrom('memberships')
    .select('id')
    .where('tenant_id', '=', tenant_id)
    .where('role', '=', 'owner')
    .where('id', '!=', id)
    .limit(1)
    .executeTakeFirst();
  return other !== undefined;
}
