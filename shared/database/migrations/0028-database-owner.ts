import { type Kysely, sql } from 'kysely';

/** The data directory that the database belongs to: one row at most. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `create table database_owner (
        singleton boolean primary key default true check (singleton),
        id uuid not null,
        path text not null,
        host text not null)`,
    )
    .execute(db);
}
