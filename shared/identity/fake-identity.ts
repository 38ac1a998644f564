import type { Clock } from '#shared/clock.ts';
import type { IdentityUser } from '#shared/identity/identity.ts';
import type { LoginAttemptStore } from '#shared/identity/login-limits.ts';
import {
  createPasswordIdentity,
  type PasswordHasher,
  type PasswordIdentity,
  type RefreshTokenRow,
  type RefreshTokenStore,
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
  const users = new Map<string, IdentityUser & { passwordHash: string }>();
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

function createFakeUsers(users: Map<string, IdentityUser & { passwordHash: string }>): UserStore {
  return {
    async insert({ emailKey, ...user }) {
      if (users.has(emailKey)) return false;
      users.set(emailKey, user);
      return true;
    },
    find: async (key) => users.get(key),
  };
}

interface Token extends RefreshTokenRow {
  used: boolean;
  family: { ended: boolean };
}

function createFakeRefreshTokens(findUser: (id: string) => IdentityUser | undefined): RefreshTokenStore {
  const tokens = new Map<string, Token>();
  return {
    async addFamily(row) {
      tokens.set(row.hash, { ...row, used: false, family: { ended: false } });
    },
    async rotate(spent, next, now) {
      const token = tokens.get(spent);
      if (token === undefined) return undefined;
      if (token.used) token.family.ended = true;
      if (token.family.ended || token.expiresAt <= now) return undefined;
      token.used = true;
      tokens.set(next.hash, { ...token, ...next, used: false });
      const user = findUser(token.userId);
      return user === undefined ? undefined : { id: user.id, email: user.email };
    },
    async endFamily(hash) {
      const token = tokens.get(hash);
      if (token !== undefined) token.family.ended = true;
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
