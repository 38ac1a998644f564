import { type Kysely, sql } from 'kysely';

/**
 * Whether a build was started on the app's cache since that was last empty: a volume outlives the transaction that made
 * it, also one that is rolled back.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `alter table apps add column cache_begun boolean not null default false`,
  `update apps set cache_begun = true where exists (select from builds where builds.app_id = apps.id)`,
];
