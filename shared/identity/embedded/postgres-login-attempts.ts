import { type Generated, sql } from 'kysely';
import type { Db } from '#shared/database/db.ts';
import type { LoginAttemptStore } from '#shared/identity/login-limits.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** `account` is the SHA-256 of an email address, known or not; `source` is '' for sources that never logged in to it. */
    login_failures: { id: Generated<string>; account: string; source: string; failed_at: Date };
    /** Where users have logged in from. */
    login_sources: { account: string; source: string; logged_in_at: Date };
  }
}

/** Login attempts in PostgreSQL, shared by all processes. */
export function createPostgresLoginAttempts(db: Db): LoginAttemptStore {
  return {
    addFailure: ({ account, source }, at, most, since) =>
      db.transaction().execute(async (trx) => {
        await sql`select pg_advisory_xact_lock(hashtextextended(${`login ${account} ${source}`}, 0))`.execute(trx);
        const failures = await trx
          .selectFrom('login_failures')
          .select('failed_at')
          .where('account', '=', account)
          .where('source', '=', source)
          .where('failed_at', '>', since)
          .orderBy('failed_at', 'desc')
          .limit(most)
          .execute();
        const oldest = failures[most - 1];
        if (oldest !== undefined) return { oldest: oldest.failed_at };
        const row = { account, source, failed_at: at };
        return trx.insertInto('login_failures').values(row).returning('id').executeTakeFirstOrThrow();
      }),

    async removeFailure(id) {
      await db.deleteFrom('login_failures').where('id', '=', id).execute();
    },

    async isKnown(account, source, since) {
      const row = await db
        .selectFrom('login_sources')
        .select('account')
        .where('account', '=', account)
        .where('source', '=', source)
        .where('logged_in_at', '>', since)
        .executeTakeFirst();
      return row !== undefined;
    },

    async remember(account, source, at) {
      await db
        .insertInto('login_sources')
        .values({ account, source, logged_in_at: at })
        .onConflict((conflict) => conflict.columns(['account', 'source']).doUpdateSet({ logged_in_at: at }))
        .execute();
    },

    async sweep(failuresBefore, sourcesBefore) {
      const failures = await db.deleteFrom('login_failures').where('failed_at', '<', failuresBefore).executeTakeFirst();
      const sources = await db.deleteFrom('login_sources').where('logged_in_at', '<', sourcesBefore).executeTakeFirst();
      return Number(failures.numDeletedRows + sources.numDeletedRows);
    },
  };
}
