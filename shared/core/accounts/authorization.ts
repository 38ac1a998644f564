import type { Person, Principal, Role, TokenScope } from '#shared/core/accounts/principals.ts';
import { AppError } from '#shared/errors.ts';
import type { Identity } from '#shared/identity/identity.ts';

const ranks: Record<Role, number> = { viewer: 0, developer: 1, admin: 2, owner: 3 };

/** Every role may read. @throws AppError `forbidden` below `role` */
export function requireRole(principal: Pick<Principal, 'role'>, role: Role): void {
  if (ranks[principal.role] >= ranks[role]) return;
  throw new AppError('forbidden', `Your role in this team is ${principal.role}; this needs ${role}. Ask an owner of the team.`);
}

/**
 * What gives access (keys, tokens, invitations, roles) needs a login: a leaked API token cannot prolong its own life.
 * @throws AppError `forbidden` to API tokens
 */
export function requireLogin({ tokenScope }: Person): void {
  if (tokenScope === undefined) return;
  throw new AppError('forbidden', 'An API token may not do this. Log in, and use the access token of the login.');
}

/** @throws AppError `forbidden` where an external issuer manages users, passwords and sessions */
export function requireOwnIssuer({ capabilities }: Pick<Identity, 'capabilities'>): void {
  if (capabilities.passwords) return;
  throw new AppError(
    'forbidden',
    'An external identity provider manages the users of this platform. Change your email, password and sessions there.',
  );
}

/** Whether `role` may do more than `other`. */
export function outranks(role: Role, other: Role): boolean {
  return ranks[role] > ranks[other];
}

const ceilings: Record<TokenScope, Role> = { read: 'viewer', deploy: 'developer', full: 'owner' };

/** The role of an API token: its user's, lowered to what its scope allows. */
export function narrowRole(role: Role, scope: TokenScope): Role {
  return outranks(role, ceilings[scope]) ? ceilings[scope] : role;
}
