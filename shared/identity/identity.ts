/**
 * Port: authentication. Drivers: `embedded/` (users in PostgreSQL, JWT signed by a stored key), later `oidc/`. Authorization is
 * decided in shared/core.
 */
import type { Keyset } from '#shared/database/keyset.ts';
import type { SessionId, UserId } from '#shared/ids.ts';

/** A user as the identity provider knows them. */
export interface IdentityUser {
  id: UserId;
  /** As entered at sign-up, trimmed. Compared without case. */
  email: string;
}

/** The tokens of a login. */
export interface TokenSet {
  /** JWT, `typ: at+jwt`. */
  accessToken: string;
  refreshToken: string;
  /** Lifetime of the access token in seconds. */
  expiresIn: number;
}

/** Where a login comes from. */
export interface LoginOrigin {
  /** Rate limit key of the client's address (`sourceKey`). */
  source: string;
  /** The client's `User-Agent`; '' when it sent none. */
  client: string;
}

/** A login that has not ended: its refresh tokens are valid. */
export interface Session extends LoginOrigin {
  id: SessionId;
  createdAt: Date;
  /** When its tokens were refreshed last. */
  lastUsedAt: Date;
  expiresAt: Date;
}

/** What a user wants to change. */
export interface CredentialChange {
  currentPassword: string;
  email?: string | undefined;
  password?: string | undefined;
}

/** The user of a verified access token. */
export interface TokenSubject extends IdentityUser {
  /** The token's `jti`: identifies it in rate limits and logs. */
  tokenId: string;
  /** The session that the token belongs to; undefined where the issuer names none. */
  sessionId?: SessionId | undefined;
}

export interface Identity {
  readonly capabilities: {
    /** False: users, passwords and sessions are managed by an external issuer, and all methods but `verifyAccessToken` and `readKeys` throw `forbidden`. */
    readonly passwords: boolean;
  };
  /**
   * @param source rate limit key of the client's address (`sourceKey`); later logins from there count as known
   * @param id a new one when left out
   * @throws AppError conflict if the email is taken; validation_failed with details for a bad email or password
   */
  createUser(email: string, password: string, source?: string, id?: UserId): Promise<IdentityUser>;
  /**
   * @throws AppError unauthorized for an unknown email or a wrong password, after the same time; rate_limited, also for both,
   * after too many failures
   */
  logIn(email: string, password: string, origin: LoginOrigin): Promise<TokenSet>;
  /** Tokens for a user who was just created, without asking for the password again. */
  issueTokens(user: IdentityUser, origin?: LoginOrigin): Promise<TokenSet>;
  /**
   * Exchanges a refresh token for new tokens. Using a refresh token twice revokes all tokens of its login.
   * @throws AppError unauthorized
   */
  refresh(refreshToken: string): Promise<TokenSet>;
  /**
   * Changes the email, the password or both. Sessions go on.
   * @param source rate limit key of the client's address (`sourceKey`); wrong passwords count as failed logins
   * @throws AppError forbidden for a wrong password; conflict if the email is taken; validation_failed with details; rate_limited
   */
  changeCredentials(userId: UserId, change: CredentialChange, source: string): Promise<IdentityUser>;
  /** The sessions of a user, newest first. */
  listSessions(userId: UserId, page: { before: Keyset | undefined; limit: number }): Promise<readonly Session[]>;
  /**
   * Ends one session of the user, all, or all but one: their refresh tokens, and their access tokens too.
   * @returns how many
   */
  endSessions(userId: UserId, which: { only: SessionId } | { except?: SessionId | undefined }): Promise<number>;
  /** Ends the session that a refresh token belongs to. Does nothing for an unknown token. */
  revoke(refreshToken: string): Promise<void>;
  /** @throws AppError unauthorized for anything but a valid, unexpired access token of this issuer */
  verifyAccessToken(accessToken: string): Promise<TokenSubject>;
  /** The public keys that verify access tokens (RFC 7517). */
  readKeys(): Promise<{ keys: readonly Record<string, unknown>[] }>;
}
