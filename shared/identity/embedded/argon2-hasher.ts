import { argon2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { createConcurrencyLimit } from '#shared/identity/embedded/concurrency-limit.ts';
import type { PasswordHasher } from '#shared/identity/password-identity.ts';

/** Cost parameters of argon2id (RFC 9106). */
export interface Argon2Cost {
  /** KiB. */
  readonly memory: number;
  readonly passes: number;
  readonly parallelism: number;
}

/** Above OWASP's minimum for argon2id (19 MiB, 2 passes). */
const platformCost: Argon2Cost = { memory: 65_536, passes: 2, parallelism: 1 };
const tagLength = 32;
/** Each hash uses 64 MiB and one of the four threads that file access and name lookups also need. */
const atOnce = 2;
const mostWaiting = 100;

const derive = promisify(argon2);

/** Hashes passwords with argon2id off the event loop. Hashes are PHC strings with their parameters, so that costs can rise later. */
export function createArgon2Hasher(cost = platformCost): PasswordHasher {
  const limit = createConcurrencyLimit(atOnce, mostWaiting);
  return {
    async hash(password) {
      const nonce = randomBytes(16);
      const tag = await limit(() => derive('argon2id', { message: password, nonce, tagLength, ...cost }));
      const { memory, passes, parallelism } = cost;
      return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(nonce)}$${unpadded(tag)}`;
    },
    async verify(password, hash) {
      const { nonce, tag, ...parameters } = parse(hash);
      const derived = await limit(() => derive('argon2id', { message: password, nonce, tagLength: tag.length, ...parameters }));
      return timingSafeEqual(derived, tag);
    },
  };
}

function parse(hash: string) {
  const match = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/.exec(hash);
  if (match === null) throw new Error('malformed password hash');
  const [memory, passes, parallelism] = match.slice(1, 4).map(Number) as [number, number, number];
  return {
    memory,
    passes,
    parallelism,
    nonce: Buffer.from(match[4] ?? '', 'base64'),
    tag: Buffer.from(match[5] ?? '', 'base64'),
  };
}

function unpadded(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64').replace(/=+$/, '');
}
