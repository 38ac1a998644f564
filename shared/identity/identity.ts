/**
 * Who somebody is. Drivers: `embedded/` (users in PostgreSQL, JWT signed by a stored key), later `oidc/`.
 * What they may do is shared/core's business.
 */
import type { UserId } from '#shared/ids.ts';

export interface IdentityUser {
  id: UserId;
  /** As typed at sign-up, trimmed; compared without case. */
  email: string;
}

export interface TokenSet {
  /** JWT, `typ: at+jwt`. */
  accessToken: string;
  refreshToken: string;
  /** Lifetime of the access token in seconds. */
  expiresIn: number;
}

export interface TokenSubject extends IdentityUser {
  /** `jti`: names this token in rate limits and logs. */
  tokenId: string;
}

export interface Identity {
  readonly capabilities: {
    /** False: sign-up and login happen at the outside issuer, and these methods refuse with `forbidden`. */
    readonly passwords: boolean;
  };
  /**
   * `conflict` when the email is taken, `validation_failed` with details on a bad email or password.
   * @param source where they are (`sourceKey`), to be known there when they log in
   */
  createUser(email: string, password: string, source?: string): Promise<IdentityUser>;
  /**
   * `unauthorized`, in the same time, for an unknown email and a wrong password; `rate_limited`, for both too, when there
   * were too many failures. @param source where they are (`sourceKey`)
   */
  logIn(email: string, password: string, source: string): Promise<TokenSet>;
  /** Tokens for a user just created, without the password a second time. */
  issueTokens(user: IdentityUser): Promise<TokenSet>;
  /** The refresh token is spent and a new one given. Using a spent one ends its whole family. `unauthorized` otherwise. */
  refresh(refreshToken: string): Promise<TokenSet>;
  /** Ends the family of the refresh token. Harmless when unknown. */
  revoke(refreshToken: string): Promise<void>;
  /** `unauthorized` for anything but a valid, unexpired access token of ours. */
  verifyAccessToken(accessToken: string): Promise<TokenSubject>;
  /** Public keys, for those who verify our tokens. */
  readKeys(): Promise<{ keys: readonly Record<string, unknown>[] }>;
}
