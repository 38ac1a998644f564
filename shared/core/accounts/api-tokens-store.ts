import type { Selectable } from 'kysely';
import type { Role, TokenScope } from '#shared/core/accounts/principals.ts';
import type { CreatedAt, Db, Tables } from '#shared/database/db.ts';
import { type KeysetPage, keysetBefore } from '#shared/database/keyset.ts';
import type { ApiTokenId, TenantId, UserId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** Deleted with its user's membership of the tenant. */
    api_tokens: {
      id: ApiTokenId;
      tenant_id: TenantId;
      user_id: UserId;
      name: string;
      scope: TokenScope;
      /** SHA-256 of the token, which is stored nowhere. */
      token_hash: string;
      created_at: CreatedAt;
      expires_at: Date | null;
      last_used_at: Date | null;
    };
  }
}

export type ApiTokenRow = Selectable<Tables['api_tokens']>;

/** The user and tenant that a token belongs to. */
export interface TokenOwner {
  userId: UserId;
  tenantId: TenantId;
}

/** Inserts a token. */
export async function insertApiToken(db: Db, row: ApiTokenRow): Promise<void> {
  await db.insertInto('api_tokens').values(row).execute();
}

/** A member's tokens, newest first. */
export async function listApiTokens(
  db: Db,
  { userId, tenantId, before, limit }: KeysetPage & TokenOwner,
): Promise<ApiTokenRow[]> {
  return db
    .selectFrom('api_tokens')
    .selectAll()
    .where('user_id', '=', userId)
    .where('tenant_id', '=', tenantId)
    .where(keysetBefore(before))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
}

/** False when the member has no such token. */
export async function deleteApiToken(db: Db, { userId, tenantId }: TokenOwner, id: ApiTokenId): Promise<boolean> {
  const result = await db
    .deleteFrom('api_tokens')
    .where('user_id', '=', userId)
    .where('tenant_id', '=', tenantId)
    .where('id', '=', id)
    .executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** All tokens of a user, in every tenant. @returns how many */
export async function deleteApiTokensOf(db: Db, userId: UserId): Promise<number> {
  const result = await db.deleteFrom('api_tokens').where('user_id', '=', userId).executeTakeFirst();
  return Number(result.numDeletedRows);
}

/** A token with its owner's membership, expired ones too. */
export async function readApiTokenByHash(
  db: Db,
  tokenHash: string,
): Promise<(ApiTokenRow & { email: string; role: Role }) | undefined> {
  return db
    .selectFrom('api_tokens')
    .innerJoin('memberships', (join) =>
      join.onRef('memberships.user_id', '=', 'api_tokens.user_id').onRef('memberships.tenant_id', '=', 'api_tokens.tenant_id'),
    )
    .selectAll('api_tokens')
    .select(['memberships.email', 'memberships.role'])
    .where('token_hash', '=', tokenHash)
    .executeTakeFirst();
}

/** Notes when the token was last used. */
export async function setApiTokenUsed(db: Db, id: ApiTokenId, now: Date): Promise<void> {
  await db.updateTable('api_tokens').set({ last_used_at: now }).where('id', '=', id).execute();
}
