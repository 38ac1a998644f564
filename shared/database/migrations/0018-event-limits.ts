import { type Kysely, sql } from 'kysely';

/** The table of rate-limiter-flexible, see `postgres-event-limits.ts`. Unlogged: a crash of the database forgets what was counted. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `create unlogged table event_limits (
    key varchar(255) primary key,
    points integer not null default 0,
    expire bigint)`,
  `create index event_limits_expire on event_limits (expire)`,
];
