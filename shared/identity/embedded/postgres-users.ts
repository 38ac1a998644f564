import type { CreatedAt, Db } from '#shared/database/db.ts';
import { isUniqueViolation } from '#shared/database/violations.ts';
import type { UserStore } from '#shared/identity/password-identity.ts';
import type { UserId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** `email_key` is the lower-cased address, and unique. */
    users: { id: UserId; email: string; email_key: string; password_hash: string; created_at: CreatedAt };
  }
}

/** Users with passwords, in PostgreSQL. */
export function createPostgresUsers(db: Db): UserStore {
  return {
    async insert({ id, email, emailKey, passwordHash }) {
      const result = await db
        .insertInto('users')
        .values({ id, email, email_key: emailKey, password_hash: passwordHash })
        .onConflict((conflict) => conflict.doNothing())
        .executeTakeFirst();
      return result.numInsertedOrUpdatedRows === 1n;
    },
    find: (key) => selectUser(db).where('email_key', '=', key).executeTakeFirst(),
    read: (id) => selectUser(db).where('id', '=', id).executeTakeFirst(),

    async update({ id, email, emailKey, passwordHash }, present) {
      const row = { email, email_key: emailKey, password_hash: passwordHash };
      try {
        const result = await db
          .updateTable('users')
          .set(row)
          .where('id', '=', id)
          .where('password_hash', '=', present)
          .executeTakeFirst();
        return result.numUpdatedRows === 1n ? 'changed' : 'outdated';
      } catch (error) {
        if (isUniqueViolation(error)) return 'taken';
        throw error;
      }
    },
  };
}

function selectUser(db: Db) {
  return db.selectFrom('users').select(['id', 'email', 'password_hash as passwordHash']);
}
