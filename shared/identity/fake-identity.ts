import type { Clock } from '#shared/clock.ts';
import type { LoginAttemptStore } from '#shared/identity/login-limits.ts';
import {
  createPasswordIdentity,
  type NewSession,
  type PasswordHasher,
  type PasswordIdentity,
  type RefreshTokenStore,
  type StoredUser,
  type UserStore,
} from '#shared/identity/password-identity.ts';
import type { SigningKeyStore, StoredKey } from '#shared/identity/signing-keys.ts';

/** The embedded issuer with in-memory stores and a fast password hash, for tests. Rules and tokens are the real ones. */
export function createFakeIdentity({
  clock,
  issuer,
  signingKeys = createFakeSigningKeys(),
}: {
  clock: Clock;
  issuer: string;
  signingKeys?: SigningKeyStore;
}): PasswordIdentity {
  const users = new Map<string, StoredUser>();
  return createPasswordIdentity({
    users: createFakeUsers(users),
    refreshTokens: createFakeRefreshTokens((id) => [...users.values()].find((user) => user.id === id)),
    signingKeys,
    loginAttempts: createFakeLoginAttempts(),
    hasher: sha256Hasher,
    clock,
    issuer,
  });
}

/** @param users by `emailKey` */
function createFakeUsers(users: Map<string, StoredUser>): UserStore {
  const read = (id: string): StoredUser | undefined => [...users.values()].find((user) => user.id === id);
  return {
    async insert({ emailKey, ...user }) {
      if (users.has(emailKey) || read(user.id) !== undefined) return false;
      users.set(emailKey, user);
      return true;
    },
    find: async (key) => users.get(key),
    read: async (id) => read(id),
    async update({ emailKey, ...user }, passwordHash) {
      const present = read(user.id);
      if (present?.passwordHash !== passwordHash) return 'outdated';
      if (users.has(emailKey) && users.get(emailKey) !== present) return 'taken';
      for (const [key, each] of users) if (each === present) users.delete(key);
      users.set(emailKey, user);
      return 'changed';
    },
  };
}

interface Token {
  expiresAt: Date;
  createdAt: Date;
  used: boolean;
  session: NewSession & { ended: boolean };
}

/** Access tokens of ended sessions stay valid: a database remembers the sessions, see ended-sessions-store.ts. */
function createFakeRefreshTokens(findUser: (id: string) => StoredUser | undefined): RefreshTokenStore {
  const tokens = new Map<string, Token>();
  const listOpen = (userId: string, now: Date): Token[] =>
    [...tokens.values()].filter(
      ({ session, used, expiresAt }) => session.userId === userId && !session.ended && !used && expiresAt > now,
    );
  return {
    async addSession(session, passwordHash) {
      if (passwordHash !== undefined && findUser(session.userId)?.passwordHash !== passwordHash) return false;
      const { expiresAt, createdAt } = session;
      tokens.set(session.hash, { expiresAt, createdAt, used: false, session: { ...session, ended: false } });
      return true;
    },
    async rotate(spent, next, now) {
      const token = tokens.get(spent);
      if (token === undefined) return undefined;
      if (token.used) token.session.ended = true;
      if (token.session.ended || token.expiresAt <= now) return undefined;
      token.used = true;
      tokens.set(next.hash, { expiresAt: next.expiresAt, createdAt: now, used: false, session: token.session });
      const user = findUser(token.session.userId);
      return user && { user: { id: user.id, email: user.email }, sessionId: token.session.id };
    },
    async endSessionOf(hash) {
      const token = tokens.get(hash);
      if (token !== undefined) token.session.ended = true;
    },
    async listSessions(userId, now, { before, limit }) {
      const sessions = listOpen(userId, now).map(({ session, createdAt: lastUsedAt, expiresAt }) => ({
        id: session.id,
        createdAt: session.createdAt,
        source: session.source,
        client: session.client,
        lastUsedAt,
        expiresAt,
      }));
      const orderOf = (at: Date, id: string): string => `${String(at.getTime()).padStart(15, '0')}${id}`;
      const sorted = sessions.sort((one, other) =>
        orderOf(one.createdAt, one.id) < orderOf(other.createdAt, other.id) ? 1 : -1,
      );
      const last = before === undefined ? undefined : orderOf(before.createdAt, before.id);
      return sorted.filter(({ createdAt, id }) => last === undefined || orderOf(createdAt, id) < last).slice(0, limit);
    },
    async endSessions(userId, which, now) {
      const ended = listOpen(userId, now).filter(({ session: { id } }) =>
        'only' in which ? id === which.only : id !== which.except,
      );
      for (const { session } of ended) session.ended = true;
      return ended.length;
    },
  };
}

/** In-memory signing keys, for tests. */
export function createFakeSigningKeys(): SigningKeyStore {
  const keys: StoredKey[] = [];
  return {
    list: async (notRetiredBefore) => keys.filter((key) => key.retiredAt === null || key.retiredAt >= notRetiredBefore),
    async addFirst(key) {
      if (!keys.some((each) => each.retiredAt === null)) keys.unshift(key);
    },
    async addSuccessor(key, agedFrom) {
      if (keys.some((each) => each.retiredAt === null && each.signsFrom > agedFrom)) return false;
      for (const each of keys) each.retiredAt ??= key.signsFrom;
      keys.unshift(key);
      return true;
    },
    async deleteRetired(before) {
      const kept = keys.filter((key) => key.retiredAt === null || key.retiredAt >= before);
      const deleted = keys.length - kept.length;
      keys.splice(0, keys.length, ...kept);
      return deleted;
    },
  };
}

/** In-memory login attempts, for tests. */
export function createFakeLoginAttempts(): LoginAttemptStore {
  let failures: { id: string; budget: string; at: Date }[] = [];
  const sources = new Map<string, Date>();
  const nameOf = (account: string, source: string): string => JSON.stringify([account, source]);
  return {
    async addFailure({ account, source }, at, most, since) {
      const budget = nameOf(account, source);
      const oldest = failures.filter((failure) => failure.budget === budget && failure.at > since).at(-most);
      if (oldest !== undefined) return { oldest: oldest.at };
      const id = crypto.randomUUID();
      failures.push({ id, budget, at });
      return { id };
    },
    async removeFailure(id) {
      failures = failures.filter((failure) => failure.id !== id);
    },
    isKnown: async (account, source, since) => (sources.get(nameOf(account, source))?.getTime() ?? 0) > since.getTime(),
    async remember(account, source, at) {
      sources.set(nameOf(account, source), at);
    },
    async sweep(failuresBefore, sourcesBefore) {
      const before = failures.length + sources.size;
      failures = failures.filter(({ at }) => at >= failuresBefore);
      for (const [name, at] of sources) if (at < sourcesBefore) sources.delete(name);
      return before - failures.length - sources.size;
    },
  };
}

const sha256Hasher: PasswordHasher = {
  async hash(password) {
    return new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(password))).toHex();
  },
  async verify(password, hash) {
    return (await this.hash(password)) === hash;
  },
};
