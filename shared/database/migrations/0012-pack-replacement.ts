import { type Kysely, sql } from 'kysely';

/** Packs can be unreachable, or retired because another holds their objects. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `alter table git_packs add column unreachable_since timestamptz(3), add column retired_at timestamptz(3)`,
  `create index git_packs_retired on git_packs (retired_at) where retired_at is not null`,
];
