import type { Selectable } from 'kysely';
import type { Role } from '#shared/core/accounts/principals.ts';
import type { CreatedAt, Db, Tables } from '#shared/database/db.ts';
import { type KeysetPage, keysetBefore } from '#shared/database/keyset.ts';
import type { InvitationId, TenantId, UserId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** Open ones only: an invitation is deleted when it is accepted, and with the membership of whoever made it. */
    invitations: {
      id: InvitationId;
      tenant_id: TenantId;
      email: string;
      /** The address in lower case. */
      email_key: string;
      role: Role;
      /** SHA-256 of the token, which is stored nowhere. */
      token_hash: string;
      invited_by: UserId;
      created_at: CreatedAt;
      expires_at: Date;
    };
  }
}

export type InvitationRow = Selectable<Tables['invitations']>;

/** Inserts an invitation. */
export async function insertInvitation(db: Db, row: InvitationRow): Promise<void> {
  await db.insertInto('invitations').values(row).execute();
}

/** An open invitation that has not expired. */
export async function readInvitation(db: Db, tokenHash: string, now: Date): Promise<InvitationRow | undefined> {
  return db
    .selectFrom('invitations')
    .selectAll()
    .where('token_hash', '=', tokenHash)
    .where('expires_at', '>', now)
    .executeTakeFirst();
}

/** Deletes an open invitation that has not expired and returns it: a token is accepted once. */
export async function takeInvitation(trx: Db, tokenHash: string, now: Date): Promise<InvitationRow | undefined> {
  return trx
    .deleteFrom('invitations')
    .where('token_hash', '=', tokenHash)
    .where('expires_at', '>', now)
    .returningAll()
    .executeTakeFirst();
}

/** A tenant's open invitations that have not expired, newest first. */
export async function listInvitations(
  db: Db,
  { tenantId, now, before, limit }: KeysetPage & { tenantId: TenantId; now: Date },
): Promise<InvitationRow[]> {
  return db
    .selectFrom('invitations')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('expires_at', '>', now)
    .where(keysetBefore(before))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
}

/** False when the tenant has no such open invitation. */
export async function deleteInvitation(db: Db, tenantId: TenantId, id: InvitationId): Promise<boolean> {
  const result = await db.deleteFrom('invitations').where('tenant_id', '=', tenantId).where('id', '=', id).executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** Deletes the open invitation of an address and returns its role; undefined when there was none. */
export async function deleteInvitationOf(trx: Db, tenantId: TenantId, emailKey: string): Promise<Role | undefined> {
  const row = await trx
    .deleteFrom('invitations')
    .where('tenant_id', '=', tenantId)
    .where('email_key', '=', emailKey)
    .returning('role')
    .executeTakeFirst();
  return row?.role;
}

/** Deletes all open invitations that a member made. */
export async function deleteInvitationsBy(trx: Db, tenantId: TenantId, invitedBy: UserId): Promise<void> {
  await trx.deleteFrom('invitations').where('tenant_id', '=', tenantId).where('invited_by', '=', invitedBy).execute();
}
