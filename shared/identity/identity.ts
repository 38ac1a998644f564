/**
 * Port: authentication. Drivers: `embedded/` (users in PostgreSQL, JWT signed by a stored key), later `oidc/`. Authorization is
 * decided in shared/core.
 */
import type { UserId } from '#shared/ids.ts';

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

/** The user of a verified access token. */
export interface TokenSubject extends IdentityUser {
  /** The token's `jti`: identifies it in rate limits and logs. */
  tokenId: string;
}

export interface Identity {
  readonly capabilities: {
    /** False: sign-up and login happen at an external issuer, and `createUser` and `logIn` throw `forbidden`. */
    readonly passwords: boolean;
  };
  /**
   * @param source rate limit key of the client's address (`sourceKey`); later logins from there count as known
   * @throws AppError conflict if the email is taken; validation_failed with details for a bad email or password
   */
  createUser(email: string, password: string, source?: string): Promise<IdentityUser>;
  /**
   * @param source rate limit key of the client's address (`sourceKey`)
   * @throws AppError unauthorized for an unknown email or a wrong password, after the same time; rate_limited, also for both,
   * after too many failures
   */
  logIn(email: string, password: string, source: string): Promise<TokenSet>;
  /** Tokens for a user who was just created, without asking for the password again. */
  issueTokens(user: IdentityUser): Promise<TokenSet>;
  /**
   * Exchanges a refresh token for new tokens. Using a refresh token twice revokes all tokens of its login.
   * @throws AppError unauthorized
   */
  refresh(refreshToken: string): Promise<TokenSet>;
  /** Revokes all refresh tokens of the login that this one belongs to. Does nothing for an unknown token. */
  revoke(refreshToken: string): Promise<void>;
  /** @throws AppError unauthorized for anything but a valid, unexpired access token of this issuer */
  verifyAccessToken(accessToken: string): Promise<TokenSubject>;
  /** The public keys that verify access tokens (RFC 7517). */
  readKeys(): Promise<{ keys: readonly Record<string, unknown>[] }>;
}
