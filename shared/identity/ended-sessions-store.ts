import { type RawBuilder, sql } from 'kysely';
import type { Db } from '#shared/database/db.ts';
import type { SessionId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** Sessions whose access tokens are refused although they have not expired. */
    ended_sessions: { session_id: SessionId; ended_at: Date };
  }
}

/** To be called in the transaction that ends the sessions. A session that has ended before stays as it is. */
export async function insertEndedSessions(db: Db, ids: readonly SessionId[], now: Date): Promise<void> {
  if (ids.length === 0) return;
  const rows = ids.map((id) => ({ session_id: id, ended_at: now }));
  await db
    .insertInto('ended_sessions')
    .values(rows)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/**
 * Whether a session has ended, as a part of the statement that reads its user: it costs no statement of its own.
 * @param sessionId null for callers without a session, who have not ended
 */
export function isSessionEnded(sessionId: RawBuilder<SessionId | null>): RawBuilder<boolean> {
  return sql<boolean>`exists (select from ended_sessions where ended_sessions.session_id = ${sessionId}::text)`;
}

/** The same as a statement. */
export async function hasSessionEnded(db: Db, sessionId: SessionId): Promise<boolean> {
  const row = await db.selectFrom('ended_sessions').select('ended_at').where('session_id', '=', sessionId).executeTakeFirst();
  return row !== undefined;
}

/** Forgets sessions that ended before then. @returns how many */
export async function deleteEndedSessions(db: Db, before: Date): Promise<number> {
  const result = await db.deleteFrom('ended_sessions').where('ended_at', '<', before).executeTakeFirst();
  return Number(result.numDeletedRows);
}
