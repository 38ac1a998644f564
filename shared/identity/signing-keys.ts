import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';
import type { Clock } from '#shared/clock.ts';
import { accessTokenSeconds, type KeyRing, type SigningKey, signingAlgorithm } from '#shared/identity/access-tokens.ts';

export interface StoredKey {
  id: string;
  publicJwk: JWK;
  /** JSON of the private JWK. Secret: stores seal it. */
  privateJwk: string;
  retiredAt: Date | null;
}

export interface SigningKeyStore {
  /** Newest first; without those retired before `notRetiredBefore`. */
  list(notRetiredBefore: Date): Promise<readonly StoredKey[]>;
  /** Does nothing when there is a key that is not retired, whoever made it. */
  addFirst(key: StoredKey): Promise<void>;
  /** Adds `key` and retires all others, at once. */
  replace(key: StoredKey, at: Date): Promise<void>;
}

/** For how long a process may sign by keys it read earlier. */
const freshSeconds = 60;
/** An unknown key id makes a process look again, but no more often than this. */
const lookAgainMilliseconds = 1000;
/** A retired key verifies as long as the last token that anybody signed by it. */
const overlapSeconds = accessTokenSeconds + 2 * freshSeconds;

interface Loaded {
  at: number;
  current: SigningKey;
  publicKeys: ReadonlyMap<string, { key: CryptoKey; jwk: JWK }>;
}

export interface SigningKeys extends KeyRing {
  /** Public keys, the retired ones that still verify among them. */
  publish(): Promise<readonly JWK[]>;
  /** From now on a new key signs. Tokens of the old one stay valid until they expire. */
  rotate(): Promise<void>;
}

/** The keys of `store`, in memory. Processes that share the store learn of each other's rotations by themselves. */
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
      return (await fresh()).current;
    },
    async find(id) {
      const known = (await fresh()).publicKeys.get(id);
      if (known !== undefined) return known.key;
      // Perhaps another process has just made it. Strangers can name any id: they wait, the database does not suffer.
      const tooSoon = lookAgainMilliseconds - age();
      if (tooSoon > 0) await clock.sleep(tooSoon);
      return (age() < lookAgainMilliseconds ? await fresh() : await load()).publicKeys.get(id)?.key;
    },
    async publish() {
      return [...(await fresh()).publicKeys.values()].map(({ jwk }) => jwk);
    },
    async rotate() {
      await store.replace(await makeKey(), clock.now());
      await load();
    },
  };
}

async function loadKeys(store: SigningKeyStore, clock: Clock): Promise<Loaded> {
  const now = clock.now();
  const oldest = new Date(now.getTime() - overlapSeconds * 1000);
  let stored = await store.list(oldest);
  if (!stored.some((key) => key.retiredAt === null)) {
    await store.addFirst(await makeKey());
    stored = await store.list(oldest);
  }
  const active = stored.find((key) => key.retiredAt === null);
  if (active === undefined) throw new Error('no signing key');
  const publicKeys = new Map<string, { key: CryptoKey; jwk: JWK }>();
  for (const { id, publicJwk } of stored) {
    const { kty, crv, x, y } = publicJwk;
    const jwk = { kty, crv, x, y, kid: id, alg: signingAlgorithm, use: 'sig' } as JWK;
    publicKeys.set(id, { key: await toCryptoKey(jwk), jwk });
  }
  const privateKey = await toCryptoKey(JSON.parse(active.privateJwk) as JWK);
  return { at: now.getTime(), current: { id: active.id, privateKey }, publicKeys };
}

async function makeKey(): Promise<StoredKey> {
  const { publicKey, privateKey } = await generateKeyPair(signingAlgorithm, { extractable: true });
  const publicJwk = await exportJWK(publicKey);
  return {
    id: await calculateJwkThumbprint(publicJwk),
    publicJwk,
    privateJwk: JSON.stringify(await exportJWK(privateKey)),
    retiredAt: null,
  };
}

async function toCryptoKey(jwk: JWK): Promise<CryptoKey> {
  const key = await importJWK(jwk, signingAlgorithm);
  if (key instanceof Uint8Array) throw new Error('a symmetric key among the signing keys');
  return key;
}
