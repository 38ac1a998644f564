import { type Generated, sql } from 'kysely';
import type { Db } from '#shared/database/db.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** The data directory that the database belongs to: one row at most. */
    database_owner: { singleton: Generated<boolean>; id: string; path: string; host: string };
  }
}

/** A data directory, as the database knows it. */
export interface DatabaseOwner {
  /** UUID, kept in the directory. */
  id: string;
  /** Absolute path at the last start. */
  path: string;
  /** Name of its machine at the last start. */
  host: string;
}

/** The owner; undefined before there is one, and in a database without tables. */
export async function readDatabaseOwner(db: Db): Promise<DatabaseOwner | undefined> {
  const found = await sql<{ migrated: boolean }>`select to_regclass('database_owner') is not null as migrated`.execute(db);
  if (found.rows[0]?.migrated !== true) return undefined;
  return db.selectFrom('database_owner').select(['id', 'path', 'host']).executeTakeFirst();
}

/** Makes `owner` the owner of a database that has none, and notes where the owner is. Another owner stays. */
export async function insertDatabaseOwner(db: Db, owner: DatabaseOwner): Promise<void> {
  await db
    .insertInto('database_owner')
    .values(owner)
    .onConflict((conflict) =>
      conflict.column('singleton').doUpdateSet({ path: owner.path, host: owner.host }).where('database_owner.id', '=', owner.id),
    )
    .execute();
}
