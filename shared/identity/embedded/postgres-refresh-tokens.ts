import { type Generated, sql } from 'kysely';
import type { CreatedAt, Db } from '#shared/database/db.ts';
import { keysetBefore } from '#shared/database/keyset.ts';
import { insertEndedSessions } from '#shared/identity/ended-sessions-store.ts';
import type { RefreshTokenStore } from '#shared/identity/password-identity.ts';
import type { SessionId, UserId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** Only the SHA-256 of a token is stored. The tokens of one session are its family. */
    refresh_tokens: {
      token_hash: string;
      family_id: SessionId;
      user_id: UserId;
      created_at: CreatedAt;
      expires_at: Date;
      used_at: Date | null;
      revoked_at: Date | null;
      /** Of the session, as are the next two. */
      logged_in_at: Generated<Date>;
      source: Generated<string>;
      client: Generated<string>;
    };
  }
}

/** Refresh tokens in PostgreSQL, shared by all processes. */
export function createPostgresRefreshTokens(db: Db): RefreshTokenStore {
  return {
    async addSession({ id, hash, userId, createdAt, expiresAt, source, client }, passwordHash) {
      const row = sql`select ${hash}, ${id}, ${userId}, ${createdAt}::timestamptz, ${expiresAt}::timestamptz,
        ${createdAt}::timestamptz, ${source}, ${client}`;
      const user = sql`select from users where id = ${userId} and password_hash = ${passwordHash ?? ''} for share`;
      const result = await sql`
        insert into refresh_tokens (token_hash, family_id, user_id, created_at, expires_at, logged_in_at, source, client)
        ${row} where ${passwordHash === undefined} or exists (${user})`.execute(db);
      return result.numAffectedRows === 1n;
    },

    rotate: (spent, next, now) =>
      db.transaction().execute(async (trx) => {
        const familyId = await lockFamilyOf(trx, spent);
        if (familyId === undefined) return undefined;
        const token = await trx
          .updateTable('refresh_tokens')
          .set({ used_at: now })
          .where('token_hash', '=', spent)
          .where('used_at', 'is', null)
          .where('revoked_at', 'is', null)
          .where('expires_at', '>', now)
          .returning(['user_id', 'logged_in_at', 'source', 'client'])
          .executeTakeFirst();
        if (token === undefined) {
          const stolen = await trx
            .selectFrom('refresh_tokens')
            .select('family_id')
            .where('token_hash', '=', spent)
            .where('used_at', 'is not', null)
            .executeTakeFirst();
          if (stolen !== undefined) await endFamilies(trx, [familyId], now);
          return undefined;
        }
        const row = { ...token, token_hash: next.hash, family_id: familyId, created_at: now, expires_at: next.expiresAt };
        await trx.insertInto('refresh_tokens').values(row).execute();
        const user = await trx.selectFrom('users').select(['id', 'email']).where('id', '=', token.user_id).executeTakeFirst();
        return user && { user, sessionId: familyId };
      }),

    endSessionOf: (hash, now) =>
      db.transaction().execute(async (trx) => {
        const familyId = await lockFamilyOf(trx, hash);
        if (familyId !== undefined) await endFamilies(trx, [familyId], now);
      }),

    async listSessions(userId, now, { before, limit }) {
      const sessions = selectOpen(db, userId, now)
        .select(['family_id as id', 'logged_in_at as created_at', 'created_at as lastUsedAt', 'expires_at as expiresAt'])
        .select(['source', 'client']);
      const rows = await db
        .selectFrom(sessions.as('session'))
        .selectAll()
        .where(keysetBefore(before, 'session', 'text'))
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .limit(limit)
        .execute();
      return rows.map(({ created_at, ...session }) => ({ ...session, createdAt: created_at }));
    },

    endSessions: (userId, which, now) =>
      db.transaction().execute(async (trx) => {
        const open = selectOpen(trx, userId, now).select('family_id').orderBy('family_id');
        const rows = await open
          .$if('only' in which, (query) => query.where('family_id', '=', 'only' in which ? which.only : ('' as SessionId)))
          .execute();
        const except = 'except' in which ? which.except : undefined;
        const ids = rows.map((row) => row.family_id).filter((id) => id !== except);
        // One order for all, so that two of these cannot wait for each other.
        for (const id of ids) await lockFamily(trx, id);
        await endFamilies(trx, ids, now);
        return ids.length;
      }),
  };
}

/** The newest token of each open session. */
function selectOpen(db: Db, userId: UserId, now: Date) {
  return db
    .selectFrom('refresh_tokens')
    .where('user_id', '=', userId)
    .where('used_at', 'is', null)
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', now);
}

/** Serializes changes of a family: otherwise a token added while the family is revoked would stay valid. */
async function lockFamilyOf(trx: Db, hash: string): Promise<SessionId | undefined> {
  const token = await trx.selectFrom('refresh_tokens').select('family_id').where('token_hash', '=', hash).executeTakeFirst();
  if (token !== undefined) await lockFamily(trx, token.family_id);
  return token?.family_id;
}

async function lockFamily(trx: Db, familyId: SessionId): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${familyId}, 0))`.execute(trx);
}

async function endFamilies(trx: Db, familyIds: readonly SessionId[], now: Date): Promise<void> {
  if (familyIds.length === 0) return;
  await trx
    .updateTable('refresh_tokens')
    .set({ revoked_at: now })
    .where('family_id', 'in', familyIds)
    .where('revoked_at', 'is', null)
    .execute();
  await insertEndedSessions(trx, familyIds, now);
}
