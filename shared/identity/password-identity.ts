import type { Clock } from '#shared/clock.ts';
import { secondsPerDay } from '#shared/durations.ts';
import { AppError } from '#shared/errors.ts';
import { accessTokenSeconds, issueAccessToken, verifyAccessToken } from '#shared/identity/access-tokens.ts';
import { checkEmail, checkPassword, emailKey } from '#shared/identity/credentials.ts';
import type { Identity, IdentityUser, TokenSet } from '#shared/identity/identity.ts';
import { createLoginLimits, type LoginAttemptStore } from '#shared/identity/login-limits.ts';
import { createSigningKeys, type SigningKeyStore } from '#shared/identity/signing-keys.ts';
import { cacheVerified } from '#shared/identity/verified-tokens.ts';
import { newUuid, type UserId } from '#shared/ids.ts';
import { hashSecretToken, newSecretToken } from '#shared/secret-token.ts';

/** Stores users. */
export interface UserStore {
  /** @returns false if the email key is taken */
  insert(user: IdentityUser & { emailKey: string; passwordHash: string }): Promise<boolean>;
  /** @param key see `emailKey` */
  find(key: string): Promise<(IdentityUser & { passwordHash: string }) | undefined>;
}

/** Stores hashes of refresh tokens. A family is all tokens that descend from one login. */
export interface RefreshTokenStore {
  addFamily(token: RefreshTokenRow): Promise<void>;
  /**
   * Marks `spent` as used and adds `next` to its family, atomically. Undefined if `spent` is unknown, expired or revoked.
   * Using a token twice revokes its family.
   */
  rotate(spent: string, next: { hash: string; expiresAt: Date }, now: Date): Promise<IdentityUser | undefined>;
  /** Revokes all tokens of the family. */
  endFamily(hash: string, now: Date): Promise<void>;
}

/** A stored refresh token. */
export interface RefreshTokenRow {
  hash: string;
  userId: UserId;
  expiresAt: Date;
}

/** Hashes passwords. */
export interface PasswordHasher {
  /** @returns a self-describing hash with its salt and parameters */
  hash(password: string): Promise<string>;
  /** Takes the same time for every result. */
  verify(password: string, hash: string): Promise<boolean>;
}

/** Dependencies of {@link createPasswordIdentity}. */
export interface PasswordIdentityParts {
  users: UserStore;
  refreshTokens: RefreshTokenStore;
  signingKeys: SigningKeyStore;
  loginAttempts: LoginAttemptStore;
  hasher: PasswordHasher;
  clock: Clock;
  /** `iss`; see issuer.ts. */
  issuer: string;
}

/** An issuer of our own, with its maintenance tasks. */
export interface PasswordIdentity extends Identity {
  /**
   * Publishes a new signing key when the current one is 30 days old; the new key signs from ten minutes later. Tokens of the old
   * key stay valid until they expire. Removes keys without valid tokens. @returns whether a key was added
   */
  rotateKeys(): Promise<boolean>;
  /** Removes failed logins that no longer count and sources without a recent login. @returns how many */
  sweepLoginAttempts(): Promise<number>;
}

const refreshTokenSeconds = 30 * secondsPerDay;

/** An issuer of our own: users with passwords, access tokens signed by stored keys, refresh tokens that rotate. */
export function createPasswordIdentity(parts: PasswordIdentityParts): PasswordIdentity {
  const { users, refreshTokens, hasher, clock, issuer } = parts;
  const keys = createSigningKeys(parts.signingKeys, clock);
  const loginLimits = createLoginLimits(parts.loginAttempts, clock);
  // The password of an unknown email is compared with this hash, so that both cases take the same time.
  let decoy: Promise<string> | undefined;

  const tokensFor = async (user: IdentityUser, refreshToken: string): Promise<TokenSet> => ({
    accessToken: await issueAccessToken(user, issuer, keys, clock),
    refreshToken,
    expiresIn: accessTokenSeconds,
  });
  const expiry = (): Date => new Date(clock.now().getTime() + refreshTokenSeconds * 1000);
  const openFamily = async (user: IdentityUser): Promise<TokenSet> => {
    const token = newSecretToken('paas_rt_');
    await refreshTokens.addFamily({ hash: await hashSecretToken(token), userId: user.id, expiresAt: expiry() });
    return tokensFor(user, token);
  };

  const check = async (email: string, password: string): Promise<IdentityUser | undefined> => {
    decoy ??= hasher.hash(newUuid());
    const user = await users.find(emailKey(email));
    const right = await hasher.verify(password, user?.passwordHash ?? (await decoy));
    return user !== undefined && right ? { id: user.id, email: user.email } : undefined;
  };

  return {
    capabilities: { passwords: true },

    async createUser(typedEmail, password, source) {
      const email = checkEmail(typedEmail);
      checkPassword(password);
      const user = { id: newUuid<UserId>(), email };
      const added = await users.insert({ ...user, emailKey: emailKey(email), passwordHash: await hasher.hash(password) });
      if (!added) throw new AppError('conflict', 'A user with this email already exists. Log in instead.');
      if (source !== undefined) await loginLimits.remember(email, source);
      return user;
    },

    async logIn(email, password, source) {
      const attempt = await loginLimits.begin(email, source);
      const user = await check(email, password).catch(async (error: unknown) => {
        await attempt.forgive();
        throw error;
      });
      if (user === undefined) throw new AppError('unauthorized', 'Email or password is wrong.');
      await attempt.succeed();
      return openFamily(user);
    },

    issueTokens: openFamily,

    async refresh(refreshToken) {
      const next = newSecretToken('paas_rt_');
      const rotated = { hash: await hashSecretToken(next), expiresAt: expiry() };
      const user = await refreshTokens.rotate(await hashSecretToken(refreshToken), rotated, clock.now());
      if (user === undefined) throw new AppError('unauthorized', 'The refresh token is no longer valid. Log in again.');
      return tokensFor(user, next);
    },

    async revoke(refreshToken) {
      await refreshTokens.endFamily(await hashSecretToken(refreshToken), clock.now());
    },

    verifyAccessToken: cacheVerified((token) => verifyAccessToken(token, issuer, keys, clock), clock),
    readKeys: async () => ({ keys: (await keys.publish()).map((jwk) => ({ ...jwk })) }),
    rotateKeys: () => keys.rotate(),
    sweepLoginAttempts: () => loginLimits.sweep(),
  };
}
