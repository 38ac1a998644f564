import type { Clock } from '#shared/clock.ts';
import { AppError } from '#shared/errors.ts';
import { accessTokenSeconds, issueAccessToken, verifyAccessToken } from '#shared/identity/access-tokens.ts';
import { checkEmail, checkPassword, emailKey } from '#shared/identity/credentials.ts';
import type { Identity, IdentityUser, TokenSet } from '#shared/identity/identity.ts';
import { createLoginLimits, type LoginAttemptStore } from '#shared/identity/login-limits.ts';
import { createSigningKeys, type SigningKeyStore } from '#shared/identity/signing-keys.ts';
import { rememberVerified } from '#shared/identity/verified-tokens.ts';
import { newUuid, type UserId } from '#shared/ids.ts';
import { hashSecretToken, newSecretToken } from '#shared/secret-token.ts';

export interface UserStore {
  /** False when the key is taken. */
  insert(user: IdentityUser & { emailKey: string; passwordHash: string }): Promise<boolean>;
  find(key: string): Promise<(IdentityUser & { passwordHash: string }) | undefined>;
}

/** Only hashes of refresh tokens are kept. A family is all tokens that came of one login. */
export interface RefreshTokenStore {
  addFamily(token: RefreshTokenRow): Promise<void>;
  /**
   * Spends `spent` and adds `next` to its family, at once; undefined when it is unknown, expired or ended. Spending one
   * twice ends its family.
   */
  rotate(spent: string, next: { hash: string; expiresAt: Date }, now: Date): Promise<IdentityUser | undefined>;
  endFamily(hash: string, now: Date): Promise<void>;
}

export interface RefreshTokenRow {
  hash: string;
  userId: UserId;
  expiresAt: Date;
}

export interface PasswordHasher {
  hash(password: string): Promise<string>;
  /** Takes the same time whatever the answer. */
  verify(password: string, hash: string): Promise<boolean>;
}

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

export interface PasswordIdentity extends Identity {
  /**
   * When the key that signs is 30 days old, the next one is published, and signs from ten minutes later on; tokens of the
   * old one stay valid until they expire. Forgets keys of which no token can be valid. Returns whether there is a next one.
   */
  rotateKeys(): Promise<boolean>;
  /** Forgets failed logins that do not count any more, and addresses nobody has logged in from for long. Returns how many. */
  sweepLoginAttempts(): Promise<number>;
}

const refreshTokenSeconds = 30 * 86_400;

/** An issuer of our own: users with passwords, access tokens signed by stored keys, refresh tokens that rotate. */
export function createPasswordIdentity(parts: PasswordIdentityParts): PasswordIdentity {
  const { users, refreshTokens, hasher, clock, issuer } = parts;
  const keys = createSigningKeys(parts.signingKeys, clock);
  const loginLimits = createLoginLimits(parts.loginAttempts, clock);
  // What an unknown email's password is compared with, so that it costs what a known one's does.
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
      if (!added) throw new AppError('conflict', 'There is already a user with this email. Log in instead.');
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
      if (user === undefined) throw new AppError('unauthorized', 'The refresh token is not valid any more. Log in again.');
      return tokensFor(user, next);
    },

    async revoke(refreshToken) {
      await refreshTokens.endFamily(await hashSecretToken(refreshToken), clock.now());
    },

    verifyAccessToken: rememberVerified((token) => verifyAccessToken(token, issuer, keys, clock), clock),
    readKeys: async () => ({ keys: (await keys.publish()).map((jwk) => ({ ...jwk })) }),
    rotateKeys: () => keys.rotate(),
    sweepLoginAttempts: () => loginLimits.sweep(),
  };
}
