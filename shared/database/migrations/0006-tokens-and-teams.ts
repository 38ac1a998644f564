import { type Kysely, sql } from 'kysely';

/** Tokens and invitations hang on the membership that made them: with it they end, in the same statement. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `alter table memberships add column id uuid not null default gen_random_uuid() unique`,
  `drop index memberships_tenant`,
  `create index memberships_tenant on memberships (tenant_id, created_at desc, id desc)`,
  `create table api_tokens (
    id uuid primary key,
    tenant_id text not null,
    user_id text not null,
    name text not null,
    scope text not null check (scope in ('read', 'deploy', 'full')),
    token_hash text not null unique,
    created_at timestamptz(3) not null default now(),
    expires_at timestamptz(3),
    last_used_at timestamptz(3),
    foreign key (user_id, tenant_id) references memberships (user_id, tenant_id) on delete cascade)`,
  `create index api_tokens_member on api_tokens (user_id, tenant_id, created_at desc, id desc)`,
  `create table invitations (
    id uuid primary key,
    tenant_id text not null references tenants on delete cascade,
    email text not null,
    email_key text not null,
    role text not null check (role in ('owner', 'admin', 'developer', 'viewer')),
    token_hash text not null unique,
    invited_by text not null,
    created_at timestamptz(3) not null default now(),
    expires_at timestamptz(3) not null,
    unique (tenant_id, email_key),
    foreign key (invited_by, tenant_id) references memberships (user_id, tenant_id) on delete cascade)`,
  `create index invitations_tenant on invitations (tenant_id, created_at desc, id desc)`,
];
