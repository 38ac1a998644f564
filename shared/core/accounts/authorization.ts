import type { Person, Principal } from '#shared/core/accounts/principals.ts';
import type { AppRow } from '#shared/core/apps/apps-store.ts';
import { findApp } from '#shared/core/apps/apps-store.ts';
import type { Db, Role, TokenScope } from '#shared/database/schema.ts';
import { AppError, notFound } from '#shared/errors.ts';

const ranks: Record<Role, number> = { viewer: 0, developer: 1, admin: 2, owner: 3 };

/** Throws `forbidden` below `role`. Looking is allowed to every role. */
export function requireRole(principal: Principal, role: Role): void {
  if (ranks[principal.role] >= ranks[role]) return;
  throw new AppError('forbidden', `Your role in this team is ${principal.role}; this needs ${role}. Ask an owner of the team.`);
}

/** What gives others access (keys, tokens, invitations, roles) is for a person who logged in: a leaked token cannot outlive itself. */
export function requireLogin({ tokenScope }: Person): void {
  if (tokenScope === undefined) return;
  throw new AppError('forbidden', 'An API token may not do this: log in, and do it with the access token of the login.');
}

export function outranks(role: Role, other: Role): boolean {
  return ranks[role] > ranks[other];
}

const ceilings: Record<TokenScope, Role> = { read: 'viewer', deploy: 'developer', full: 'owner' };

/** The role of a token: its owner's, but no more than its scope lets through. */
export function narrowRole(role: Role, scope: TokenScope): Role {
  return outranks(role, ceilings[scope]) ? ceilings[scope] : role;
}

/** Whosever it is: the caller checks the tenant. What was read with the principal is not read again. */
export async function findNamedApp(db: Db, { namedApp }: Principal, app: string): Promise<AppRow | undefined> {
  return namedApp?.idOrName === app ? namedApp.row : findApp(db, app);
}

/** An active app of the principal's tenant. What belongs to others, is deleted or never was is the same `not_found`. */
export async function requireApp(db: Db, principal: Principal, app: string): Promise<AppRow> {
  const row = await findNamedApp(db, principal, app);
  if (row === undefined || row.tenant_id !== principal.tenantId || row.deleted_at !== null) throw notFound('app');
  return row;
}

/** Like `requireApp`, for what changes the app: developers and above. */
export async function requireAppToChange(db: Db, principal: Principal, app: string): Promise<AppRow> {
  const row = await requireApp(db, principal, app);
  requireRole(principal, 'developer');
  return row;
}
