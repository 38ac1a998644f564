import { sql, type Transaction } from 'kysely';
import type { CreatedAt, Db, Tables } from '#shared/database/db.ts';
import type { RefreshTokenStore } from '#shared/identity/password-identity.ts';
import type { UserId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** Only the SHA-256 of a token is stored. */
    refresh_tokens: {
      token_hash: string;
      family_id: string;
      user_id: UserId;
      created_at: CreatedAt;
      expires_at: Date;
      used_at: Date | null;
      revoked_at: Date | null;
    };
  }
}

/** Refresh tokens in PostgreSQL, shared by all processes. */
export function createPostgresRefreshTokens(db: Db): RefreshTokenStore {
  return {
    async addFamily({ hash, userId, expiresAt }) {
      const row = { token_hash: hash, family_id: crypto.randomUUID(), user_id: userId, expires_at: expiresAt };
      await db.insertInto('refresh_tokens').values(row).execute();
    },

    rotate: (spent, next, now) =>
      db.transaction().execute(async (trx) => {
        const familyId = await lockFamily(trx, spent);
        if (familyId === undefined) return undefined;
        const token = await trx
          .updateTable('refresh_tokens')
          .set({ used_at: now })
          .where('token_hash', '=', spent)
          .where('used_at', 'is', null)
          .where('revoked_at', 'is', null)
          .where('expires_at', '>', now)
          .returning('user_id')
          .executeTakeFirst();
        if (token === undefined) {
          const stolen = await trx
            .selectFrom('refresh_tokens')
            .select('family_id')
            .where('token_hash', '=', spent)
            .where('used_at', 'is not', null)
            .executeTakeFirst();
          if (stolen !== undefined) await endFamily(trx, familyId, now);
          return undefined;
        }
        const row = { token_hash: next.hash, family_id: familyId, user_id: token.user_id, expires_at: next.expiresAt };
        await trx.insertInto('refresh_tokens').values(row).execute();
        return trx.selectFrom('users').select(['id', 'email']).where('id', '=', token.user_id).executeTakeFirst();
      }),

    endFamily: (hash, now) =>
      db.transaction().execute(async (trx) => {
        const familyId = await lockFamily(trx, hash);
        if (familyId !== undefined) await endFamily(trx, familyId, now);
      }),
  };
}

/** Serializes changes of a family: otherwise a token added while the family is revoked would stay valid. */
async function lockFamily(trx: Transaction<Tables>, hash: string): Promise<string | undefined> {
  const token = await trx.selectFrom('refresh_tokens').select('family_id').where('token_hash', '=', hash).executeTakeFirst();
  if (token === undefined) return undefined;
  await sql`select pg_advisory_xact_lock(hashtextextended(${token.family_id}, 0))`.execute(trx);
  return token.family_id;
}

async function endFamily(trx: Transaction<Tables>, familyId: string, now: Date): Promise<void> {
  await trx
    .updateTable('refresh_tokens')
    .set({ revoked_at: now })
    .where('family_id', '=', familyId)
    .where('revoked_at', 'is', null)
    .execute();
}
