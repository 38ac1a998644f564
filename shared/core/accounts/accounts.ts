/**
 * Users, teams, SSH keys and API tokens: the nouns, and what entry points may ask of them.
 * A method that takes a principal throws `not_found` for what the principal's tenant does not own and `forbidden` for what
 * the role does not allow. `app` is an id or a name; ids take precedence.
 */
import type { Person, Principal, Tenant } from '#shared/core/accounts/principals.ts';
import type { Page, PageQuery } from '#shared/core/page.ts';
import type { Role, TokenScope } from '#shared/database/schema.ts';
import type { TokenSet } from '#shared/identity/identity.ts';
import type { ApiTokenId, InvitationId, MembershipId, SshKeyId, UserId } from '#shared/ids.ts';

export interface Accounts {
  /** A user, a tenant of their own (or that of the invitation's token), and tokens. `forbidden` when closed and not invited. */
  signUp(request: { email: string; password: string; tenantName?: string; source?: string; invitation?: string }): Promise<{
    user: { id: UserId; email: string };
    tenant: Tenant;
    tokens: TokenSet;
  }>;
  /**
   * The principal behind a verified subject; a first visit from an outside issuer makes the tenant. Without `tenantId` in
   * the tenant they have been in longest, else in that one: `forbidden` when they are no member, or there is none. With
   * `app` what is there under that id or name is read along, see `Principal.namedApp`.
   */
  resolvePrincipal(subject: { id: UserId; email: string }, tenantId?: string, app?: string): Promise<Principal>;
  readTenant(principal: Principal): Promise<Tenant>;
}

export interface SshKey {
  id: SshKeyId;
  name: string;
  /** `type base64`, without the comment. */
  publicKey: string;
  /** `SHA256:<base64>` as `ssh-keygen -lf` prints it. */
  fingerprint: string;
  createdAt: Date;
  lastUsedAt: Date | null;
}

export interface SshKeys {
  /** `validation_failed` says what is wrong with the key; `conflict` when anybody has registered it. */
  addKey(principal: Principal, request: { id?: SshKeyId; name: string; publicKey: string }): Promise<SshKey>;
  listKeys(principal: Principal, page: PageQuery): Promise<Page<SshKey>>;
  /** `key` is an id or a fingerprint. */
  deleteKey(principal: Principal, key: string): Promise<void>;
  /** The owner of a raw public key blob (RFC 4253 §6.6), by its SHA-256; undefined when nobody's. Call after the signature verified. */
  resolveKey(blob: Uint8Array): Promise<(Principal & { keyId: SshKeyId; fingerprint: string }) | undefined>;
}

export interface ApiToken {
  id: ApiTokenId;
  name: string;
  scope: TokenScope;
  createdAt: Date;
  /** Null: never. */
  expiresAt: Date | null;
  /** To the minute. */
  lastUsedAt: Date | null;
}

/** Of the principal, in the tenant they act for. Ends with the membership. */
export interface ApiTokens {
  /** `token` is shown this once. `forbidden` to API tokens, here and in `revokeToken`. */
  createToken(
    principal: Principal,
    request: { name: string; scope: TokenScope; expiresInDays?: number },
  ): Promise<ApiToken & { token: string }>;
  listTokens(principal: Principal, page: PageQuery): Promise<Page<ApiToken>>;
  revokeToken(principal: Principal, id: string): Promise<void>;
  /** Whom a token speaks for, in its role narrowed by its scope; undefined when unknown, revoked or expired. */
  resolveToken(token: string): Promise<Principal | undefined>;
}

export interface Member {
  id: MembershipId;
  userId: UserId;
  email: string;
  role: Role;
  createdAt: Date;
}

export interface Invitation {
  id: InvitationId;
  email: string;
  role: Role;
  createdAt: Date;
  expiresAt: Date;
}

/**
 * Who belongs to the principal's tenant. Admins and owners change it, nobody beyond their own role, and an owner
 * always remains (`conflict`). Changes are `forbidden` to API tokens.
 */
export interface Team {
  /** Every tenant of the principal, newest membership first. */
  listTenants(principal: Principal, page: PageQuery): Promise<Page<Tenant & { role: Role }>>;
  listMembers(principal: Principal, page: PageQuery): Promise<Page<Member>>;
  changeRole(principal: Principal, member: string, role: Role): Promise<Member>;
  /** Anybody may remove themselves. Their keys and tokens stop working in this tenant at once. */
  removeMember(principal: Principal, member: string): Promise<void>;
  /** `token` is shown this once; an earlier invitation of the same address ends. */
  invite(principal: Principal, request: { email: string; role: Role }): Promise<Invitation & { token: string }>;
  listInvitations(principal: Principal, page: PageQuery): Promise<Page<Invitation>>;
  withdrawInvitation(principal: Principal, invitation: string): Promise<void>;
  /** `not_found` when unknown, used or expired; `forbidden` to who has another email address. */
  acceptInvitation(person: Person, token: string): Promise<Tenant & { role: Role }>;
}
