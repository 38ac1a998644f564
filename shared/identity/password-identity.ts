import type { Clock } from '#shared/clock.ts';
import type { Keyset } from '#shared/database/keyset.ts';
import { secondsPerDay } from '#shared/durations.ts';
import { AppError } from '#shared/errors.ts';
import { accessTokenSeconds, issueAccessToken, type TokenOwner, verifyAccessToken } from '#shared/identity/access-tokens.ts';
import { checkEmail, checkPassword, emailKey } from '#shared/identity/credentials.ts';
import type { Identity, IdentityUser, LoginOrigin, Session, TokenSet } from '#shared/identity/identity.ts';
import { createLoginLimits, type LoginAttemptStore } from '#shared/identity/login-limits.ts';
import { createSigningKeys, type SigningKeyStore } from '#shared/identity/signing-keys.ts';
import { cacheVerified } from '#shared/identity/verified-tokens.ts';
import { newUuid, type SessionId, type UserId } from '#shared/ids.ts';
import { hashSecretToken, newSecretToken } from '#shared/secret-token.ts';

/** Stores users. */
export interface UserStore {
  /** @returns false if the email key or the id is taken */
  insert(user: IdentityUser & { emailKey: string; passwordHash: string }): Promise<boolean>;
  /** @param key see `emailKey` */
  find(key: string): Promise<StoredUser | undefined>;
  read(id: UserId): Promise<StoredUser | undefined>;
  /**
   * Replaces email and password hash, unless the password has changed meanwhile.
   * @param passwordHash the present one
   */
  update(user: StoredUser & { emailKey: string }, passwordHash: string): Promise<'changed' | 'taken' | 'outdated'>;
}

/** A user with the hash of their password. */
export interface StoredUser extends IdentityUser {
  passwordHash: string;
}

/** Stores hashes of refresh tokens. All tokens that descend from one login are a session. */
export interface RefreshTokenStore {
  /**
   * Begins a session.
   * @param passwordHash the session begins only if this is still the user's
   * @returns false when the password has changed
   */
  addSession(session: NewSession, passwordHash?: string): Promise<boolean>;
  /**
   * Marks `spent` as used and adds `next` to its session, atomically. Undefined if `spent` is unknown, expired or revoked.
   * Using a token twice ends its session.
   */
  rotate(spent: string, next: { hash: string; expiresAt: Date }, now: Date): Promise<TokenOwner | undefined>;
  /** Ends the session of a token. */
  endSessionOf(hash: string, now: Date): Promise<void>;
  /** See Identity. */
  listSessions(userId: UserId, now: Date, page: { before: Keyset | undefined; limit: number }): Promise<readonly Session[]>;
  /** See Identity. */
  endSessions(userId: UserId, which: { only: SessionId } | { except?: SessionId | undefined }, now: Date): Promise<number>;
}

/** A session and the hash of its first refresh token. */
export interface NewSession extends Omit<Session, 'lastUsedAt'> {
  hash: string;
  userId: UserId;
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
const unknownOrigin: LoginOrigin = { source: '', client: '' };

/** An issuer of our own: users with passwords, access tokens signed by stored keys, refresh tokens that rotate. */
export function createPasswordIdentity(parts: PasswordIdentityParts): PasswordIdentity {
  const { users, refreshTokens, hasher, clock, issuer } = parts;
  const keys = createSigningKeys(parts.signingKeys, clock);
  const loginLimits = createLoginLimits(parts.loginAttempts, clock);
  // The password of an unknown email is compared with this hash, so that both cases take the same time.
  let decoy: Promise<string> | undefined;

  const tokensFor = async (owner: TokenOwner, refreshToken: string): Promise<TokenSet> => ({
    accessToken: await issueAccessToken(owner, issuer, keys, clock),
    refreshToken,
    expiresIn: accessTokenSeconds,
  });
  const expiry = (): Date => new Date(clock.now().getTime() + refreshTokenSeconds * 1000);
  /** Undefined when the password has changed since it was checked. */
  const openSession = async (
    user: IdentityUser,
    { source, client }: LoginOrigin,
    passwordHash?: string,
  ): Promise<TokenSet | undefined> => {
    const token = newSecretToken('paas_rt_');
    const session = { id: newUuid<SessionId>(), createdAt: clock.now(), expiresAt: expiry(), source, client };
    const row = { ...session, hash: await hashSecretToken(token), userId: user.id };
    const added = await refreshTokens.addSession(row, passwordHash);
    return added ? tokensFor({ user, sessionId: session.id }, token) : undefined;
  };

  const check = async (email: string, password: string): Promise<StoredUser | undefined> => {
    decoy ??= hasher.hash(newUuid());
    const user = await users.find(emailKey(email));
    const right = await hasher.verify(password, user?.passwordHash ?? (await decoy));
    return right ? user : undefined;
  };

  return {
    capabilities: { passwords: true },

    async createUser(typedEmail, password, source, id = newUuid()) {
      const email = checkEmail(typedEmail);
      checkPassword(password);
      const user = { id, email };
      const added = await users.insert({ ...user, emailKey: emailKey(email), passwordHash: await hasher.hash(password) });
      if (!added) throw new AppError('conflict', 'A user with this email already exists. Log in instead.');
      if (source !== undefined) await loginLimits.remember(email, source);
      return user;
    },

    async logIn(email, password, origin) {
      const attempt = await loginLimits.begin(email, origin.source);
      const user = await check(email, password).catch(async (error: unknown) => {
        await attempt.forgive();
        throw error;
      });
      // A session that began with the old password after it was changed would outlive the change.
      const tokens = user && (await openSession(user, origin, user.passwordHash));
      if (tokens === undefined) throw new AppError('unauthorized', 'Email or password is wrong.');
      await attempt.succeed();
      return tokens;
    },

    async issueTokens(user, origin = unknownOrigin) {
      const tokens = await openSession(user, origin);
      if (tokens === undefined) throw new Error('a session without a password cannot be refused');
      return tokens;
    },

    async changeCredentials(userId, { currentPassword, email: typedEmail, password }, source) {
      const newEmail = typedEmail === undefined ? undefined : checkEmail(typedEmail);
      if (password !== undefined) checkPassword(password);
      const user = await users.read(userId);
      if (user === undefined) throw new AppError('not_found', 'No such user.');
      const attempt = await loginLimits.begin(user.email, source);
      const right = await hasher.verify(currentPassword, user.passwordHash).catch(async (error: unknown) => {
        await attempt.forgive();
        throw error;
      });
      if (!right) throw wrongPassword();
      const email = newEmail ?? user.email;
      const passwordHash = password === undefined ? user.passwordHash : await hasher.hash(password);
      const outcome = await users.update({ id: userId, email, emailKey: emailKey(email), passwordHash }, user.passwordHash);
      // It counts as a failure: otherwise many addresses could be tried to find out who has an account.
      if (outcome === 'taken') throw new AppError('conflict', 'A user with this email already exists. Choose another one.');
      if (outcome === 'outdated') throw wrongPassword();
      await attempt.succeed();
      if (newEmail !== undefined) await loginLimits.remember(newEmail, source);
      return { id: userId, email };
    },

    listSessions: (userId, page) => refreshTokens.listSessions(userId, clock.now(), page),
    endSessions: (userId, which) => refreshTokens.endSessions(userId, which, clock.now()),

    async refresh(refreshToken) {
      const next = newSecretToken('paas_rt_');
      const rotated = { hash: await hashSecretToken(next), expiresAt: expiry() };
      const owner = await refreshTokens.rotate(await hashSecretToken(refreshToken), rotated, clock.now());
      if (owner === undefined) throw new AppError('unauthorized', 'The refresh token is no longer valid. Log in again.');
      return tokensFor(owner, next);
    },

    async revoke(refreshToken) {
      await refreshTokens.endSessionOf(await hashSecretToken(refreshToken), clock.now());
    },

    verifyAccessToken: cacheVerified((token) => verifyAccessToken(token, issuer, keys, clock), clock),
    readKeys: async () => ({ keys: (await keys.publish()).map((jwk) => ({ ...jwk })) }),
    rotateKeys: () => keys.rotate(),
    sweepLoginAttempts: () => loginLimits.sweep(),
  };
}

function wrongPassword(): AppError {
  const details = [{ path: 'current_password', message: 'is wrong' }];
  return new AppError('forbidden', 'The current password is wrong.', { details });
}
