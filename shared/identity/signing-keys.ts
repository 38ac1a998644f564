import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';
import type { Clock } from '#shared/clock.ts';
import { millisecondsPerDay } from '#shared/durations.ts';
import { accessTokenSeconds, type KeyRing, type SigningKey, signingAlgorithm } from '#shared/identity/access-tokens.ts';

/** A signing key pair as it is stored. */
export interface StoredKey {
  id: string;
  publicJwk: JWK;
  /** JSON of the private JWK. Secret: stores encrypt it. */
  privateJwk: string;
  /** In the future while the key is only published, so that all verifiers know it before it signs. */
  signsFrom: Date;
  /** When its successor begins to sign; null without a successor. */
  retiredAt: Date | null;
}

/** Stores signing keys. */
export interface SigningKeyStore {
  /** Newest first, without keys retired before `notRetiredBefore`. */
  list(notRetiredBefore: Date): Promise<readonly StoredKey[]>;
  /** Does nothing if a key that is not retired exists. */
  addFirst(key: StoredKey): Promise<void>;
  /**
   * Adds `key` and retires the others at its `signsFrom`, atomically. Returns false without a change if an active key signs only
   * since after `agedFrom`: so one of several processes adds a key.
   */
  addSuccessor(key: StoredKey, agedFrom: Date): Promise<boolean>;
  /** Removes keys retired before `before`. @returns how many */
  deleteRetired(before: Date): Promise<number>;
}

/** How long a process may use keys that it read earlier. */
const freshSeconds = 60;
/** Shortest time between two reads that an unknown key id causes. */
const lookAgainMilliseconds = 1000;
/** A retired key verifies until the last token signed with it has expired. */
const overlapSeconds = accessTokenSeconds + 2 * freshSeconds;
/** How long a key signs before its successor takes over. */
export const signingDays = 30;
/** How long a new key is published before it signs: twice the lifetime of a cached key set. */
export const announcedSeconds = 600;

interface Loaded {
  at: number;
  /** Newest first; the first one whose `from` has passed signs. */
  signing: readonly (SigningKey & { from: number })[];
  publicKeys: ReadonlyMap<string, { key: CryptoKey; jwk: JWK }>;
}

/** The signing keys of a store. */
export interface SigningKeys extends KeyRing {
  /** Public keys: the current one, retired ones that still verify, and the next one. */
  publish(): Promise<readonly JWK[]>;
  /** See PasswordIdentity.rotateKeys. */
  rotate(): Promise<boolean>;
}

/** Caches the keys of `store`. Processes that share a store notice each other's rotations. */
export function createSigningKeys(store: SigningKeyStore, clock: Clock): SigningKeys {
  let loaded: Loaded | undefined;
  let loading: Promise<Loaded> | undefined;
  const load = (): Promise<Loaded> => {
    loading ??= loadKeys(store, clock)
      .then((keys) => (loaded = keys))
      .finally(() => {
        loading = undefined;
      });
    return loading;
  };
  const age = (): number => (loaded === undefined ? Number.POSITIVE_INFINITY : Math.abs(clock.now().getTime() - loaded.at));
  const fresh = async (): Promise<Loaded> => (loaded !== undefined && age() < freshSeconds * 1000 ? loaded : load());

  return {
    async current() {
      const { signing } = await fresh();
      const now = clock.now().getTime();
      const key = signing.find(({ from }) => from <= now) ?? signing.at(-1);
      if (key === undefined) throw new Error('no signing key');
      return key;
    },
    async find(id) {
      const known = (await fresh()).publicKeys.get(id);
      if (known !== undefined) return known.key;
      // Another process may have just made the key. Clients can name any id, so such lookups wait and do not load the database.
      const tooSoon = lookAgainMilliseconds - age();
      if (tooSoon > 0) await clock.sleep(tooSoon);
      return (age() < lookAgainMilliseconds ? await fresh() : await load()).publicKeys.get(id)?.key;
    },
    async publish() {
      return [...(await fresh()).publicKeys.values()].map(({ jwk }) => jwk);
    },
    async rotate() {
      const now = clock.now().getTime();
      await store.deleteRetired(new Date(now - overlapSeconds * 1000));
      const newest = (await load()).signing[0];
      const agedFrom = new Date(now - signingDays * millisecondsPerDay);
      if (newest === undefined || newest.from > agedFrom.getTime()) return false;
      const added = await store.addSuccessor(await makeKey(new Date(now + announcedSeconds * 1000)), agedFrom);
      await load();
      return added;
    },
  };
}

async function loadKeys(store: SigningKeyStore, clock: Clock): Promise<Loaded> {
  const now = clock.now();
  const oldest = new Date(now.getTime() - overlapSeconds * 1000);
  let stored = await store.list(oldest);
  if (!stored.some((key) => key.retiredAt === null)) {
    await store.addFirst(await makeKey(now));
    stored = await store.list(oldest);
  }
  const publicKeys = new Map<string, { key: CryptoKey; jwk: JWK }>();
  for (const { id, publicJwk } of stored) {
    const { kty, crv, x, y } = publicJwk;
    const jwk = { kty, crv, x, y, kid: id, alg: signingAlgorithm, use: 'sig' } as JWK;
    publicKeys.set(id, { key: await toCryptoKey(jwk), jwk });
  }
  const signing: (SigningKey & { from: number })[] = [];
  for (const { id, privateJwk, signsFrom, retiredAt } of stored) {
    if (retiredAt !== null && retiredAt <= now) continue;
    signing.push({ id, privateKey: await toCryptoKey(JSON.parse(privateJwk) as JWK), from: signsFrom.getTime() });
  }
  return { at: now.getTime(), signing, publicKeys };
}

async function makeKey(signsFrom: Date): Promise<StoredKey> {
  const { publicKey, privateKey } = await generateKeyPair(signingAlgorithm, { extractable: true });
  const publicJwk = await exportJWK(publicKey);
  return {
    id: await calculateJwkThumbprint(publicJwk),
    publicJwk,
    privateJwk: JSON.stringify(await exportJWK(privateKey)),
    signsFrom,
    retiredAt: null,
  };
}

async function toCryptoKey(jwk: JWK): Promise<CryptoKey> {
  const key = await importJWK(jwk, signingAlgorithm);
  if (key instanceof Uint8Array) throw new Error('a symmetric key among the signing keys');
  return key;
}
