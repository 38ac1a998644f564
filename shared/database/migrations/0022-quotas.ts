import { type Kysely, sql } from 'kysely';

/** What the operator changes for single tenants, and the builds of each tenant's last hour. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `create table tenant_quotas (
    tenant_id text not null references tenants on delete cascade,
    name text not null,
    amount integer not null check (amount >= 0),
    primary key (tenant_id, name))`,
  `create table tenant_build_starts (
    tenant_id text not null references tenants on delete cascade,
    started_at timestamptz not null)`,
  `create index on tenant_build_starts (tenant_id, started_at)`,
];
