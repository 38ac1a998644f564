import { argon2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { createConcurrencyLimit } from '#shared/identity/embedded/concurrency-limit.ts';
import type { PasswordHasher } from '#shared/identity/password-identity.ts';
import { formatPasswordHash, nonceLength, parsePasswordHash, platformCost, tagLength } from './password-hash.ts';

/** Each hash uses 64 MiB and one of the four threads that file access and name lookups also need. */
const atOnce = 2;
const mostWaiting = 100;

const derive = promisify(argon2);

/** Hashes passwords with argon2id off the event loop, by Node's own implementation. */
export function createArgon2Hasher(cost = platformCost): PasswordHasher {
  const limit = createConcurrencyLimit(atOnce, mostWaiting);
  return {
    async hash(password) {
      const nonce = randomBytes(nonceLength);
      const tag = await limit(() => derive('argon2id', { message: password, nonce, tagLength, ...cost }));
      return formatPasswordHash({ ...cost, nonce, tag });
    },
    async verify(password, hash) {
      const { nonce, tag, ...cost } = parsePasswordHash(hash);
      const derived = await limit(() => derive('argon2id', { message: password, nonce, tagLength: tag.length, ...cost }));
      return timingSafeEqual(derived, tag);
    },
  };
}
