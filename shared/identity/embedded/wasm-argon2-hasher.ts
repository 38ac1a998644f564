import { argon2id, argon2Verify } from 'hash-wasm';
import { createConcurrencyLimit } from '#shared/identity/embedded/concurrency-limit.ts';
import type { PasswordHasher } from '#shared/identity/password-identity.ts';
import { nonceLength, parsePasswordHash, platformCost, tagLength } from './password-hash.ts';

/** Each hash uses 64 MiB, and the thread that answers requests. */
const atOnce = 1;
const mostWaiting = 100;

/**
 * Hashes passwords with argon2id in WebAssembly, for runtimes whose `node:crypto` has no argon2. Hashes have the same form as those of
 * `createArgon2Hasher`, and each reads those of the other.
 */
export function createWasmArgon2Hasher(cost = platformCost): PasswordHasher {
  const limit = createConcurrencyLimit(atOnce, mostWaiting);
  return {
    hash: (password) =>
      limit(() =>
        argon2id({
          password: password === '' ? new Uint8Array(0) : password,
          salt: crypto.getRandomValues(new Uint8Array(nonceLength)),
          memorySize: cost.memory,
          iterations: cost.passes,
          parallelism: cost.parallelism,
          hashLength: tagLength,
          outputType: 'encoded',
        }),
      ),
    async verify(password, hash) {
      parsePasswordHash(hash);
      return limit(() => argon2Verify({ password, hash }));
    },
  };
}
