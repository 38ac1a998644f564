import { type Kysely, sql } from 'kysely';

/** A signing key is published before it signs. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `alter table signing_keys add column signs_from timestamptz(3) not null default now()`,
  `update signing_keys set signs_from = created_at`,
];
