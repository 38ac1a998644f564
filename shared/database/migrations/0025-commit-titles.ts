import { type Kysely, sql } from 'kysely';

/** The first line and the author of the commits that were built, for lists of builds and releases. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `create table commit_titles (
        repository_id uuid not null references apps on delete cascade,
        commit text not null,
        title text not null,
        author text not null,
        primary key (repository_id, commit))`,
    )
    .execute(db);
}
