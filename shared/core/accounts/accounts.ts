/**
 * Users, teams, SSH keys and API tokens: the nouns, and the interfaces that entry points use.
 * A method that takes a caller throws `forbidden` when the caller is no member of the requested tenant or their role does
 * not allow it, and `not_found` for what their tenant does not own.
 */
import type { Caller, Person, Principal, Role, Tenant, TokenScope } from '#shared/core/accounts/principals.ts';
import type { Page, PageQuery } from '#shared/core/page.ts';
import type { CredentialChange, LoginOrigin, Session, TokenSet } from '#shared/identity/identity.ts';
import type { ApiTokenId, InvitationId, MembershipId, SshKeyId, UserId } from '#shared/ids.ts';

/** What a sign-up asks for. */
export interface SignUpRequest {
  /** Of the user. The same id, email and password again: answers for the user that the first request created. */
  id?: UserId | undefined;
  email: string;
  password: string;
  /** Left out: the part of the address before the @. */
  tenantName?: string | undefined;
  /** Where the request comes from, for the login limits and the list of sessions. */
  origin?: LoginOrigin | undefined;
  /** The token of an invitation: the user joins its tenant, and no tenant is created. */
  invitation?: string | undefined;
}

export interface Accounts {
  /** Creates a user, their tenant, and tokens. `forbidden` when sign-up is closed, or by invitation and there is none. */
  signUp(request: SignUpRequest): Promise<{ user: { id: UserId; email: string }; tenant: Tenant; tokens: TokenSet }>;
  /** The tenant and role a caller acts with. The first visit of a user from an outside issuer creates their tenant. */
  resolvePrincipal(caller: Caller): Promise<Principal>;
  /** The caller with the tenant they act for. */
  readSelf(caller: Caller): Promise<{ principal: Principal; tenant: Tenant }>;
  /**
   * Changes the email, the password or both, and ends all other sessions of the user if the password was changed. `forbidden` to
   * API tokens, for a wrong password, and where an external issuer manages users; `conflict` if the email is taken.
   * @param source rate limit key of the client's address: wrong passwords count as failed logins
   */
  changeSelf(caller: Caller, change: CredentialChange, source: string): Promise<{ principal: Principal; tenant: Tenant }>;
}

/** What `endSessions` ends. */
export interface SessionEnding {
  /** `others`: all but the caller's. */
  which: 'all' | 'others';
  /** Whether the user's SSH keys are deleted, too. */
  sshKeys: boolean;
  /** Whether the user's API tokens are revoked, in each of their tenants. */
  apiTokens: boolean;
}

/** The logins of the caller. `forbidden` to API tokens, and where an external issuer manages users. */
export interface Sessions {
  /** Newest first. */
  listSessions(caller: Caller, page: PageQuery): Promise<Page<Session & { current: boolean }>>;
  /** Its refresh tokens and access tokens are refused from now on. */
  endSession(caller: Caller, id: string): Promise<void>;
  /** @returns how many were ended, deleted and revoked */
  endSessions(caller: Caller, ending: SessionEnding): Promise<{ sessions: number; sshKeys: number; apiTokens: number }>;
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
  /**
   * `validation_failed` says what is wrong with the key or its signature; `conflict` when anybody has registered the key. With a
   * signature by the key over `keyProofText`, in the armor of `ssh-keygen -Y sign`, the key is taken from any other account.
   */
  addKey(
    caller: Caller,
    request: { id?: SshKeyId | undefined; name: string; publicKey: string; signature?: string | undefined },
  ): Promise<SshKey>;
  listKeys(caller: Caller, page: PageQuery): Promise<Page<SshKey>>;
  /** `key` is an id or a fingerprint. */
  deleteKey(caller: Caller, key: string): Promise<void>;
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

/** Tokens of the caller for the tenant they act for. They end with the membership. */
export interface ApiTokens {
  /** `token` is shown this once. `forbidden` to API tokens, here and in `revokeToken`. */
  createToken(
    caller: Caller,
    request: { id?: ApiTokenId | undefined; name: string; scope: TokenScope; expiresInDays?: number | undefined },
  ): Promise<ApiToken & { token: string }>;
  listTokens(caller: Caller, page: PageQuery): Promise<Page<ApiToken>>;
  revokeToken(caller: Caller, id: string): Promise<void>;
  /** Whom a token speaks for, in its role narrowed by its scope; undefined when unknown, revoked or expired. */
  resolveToken(token: string): Promise<(Principal & { tokenId: ApiTokenId }) | undefined>;
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
 * The members of the caller's tenant. Admins and owners change them, nobody beyond their own role, and one owner always
 * remains (`conflict`). Changes are `forbidden` to API tokens.
 */
export interface Team {
  /** Every tenant of the caller, newest membership first. */
  listTenants(caller: Caller, page: PageQuery): Promise<Page<Tenant & { role: Role }>>;
  listMembers(caller: Caller, page: PageQuery): Promise<Page<Member>>;
  changeRole(caller: Caller, member: string, role: Role): Promise<Member>;
  /** Anybody may remove themselves. Their keys and tokens stop working in this tenant at once. */
  removeMember(caller: Caller, member: string): Promise<void>;
  /** `token` is shown this once; an earlier invitation of the same address ends. */
  invite(caller: Caller, request: { email: string; role: Role }): Promise<Invitation & { token: string }>;
  listInvitations(caller: Caller, page: PageQuery): Promise<Page<Invitation>>;
  withdrawInvitation(caller: Caller, invitation: string): Promise<void>;
  /** `not_found` when unknown, used or expired; `forbidden` to who has another email address. */
  acceptInvitation(person: Person, token: string): Promise<Tenant & { role: Role }>;
}
