import { argon2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { createTurnstile } from '#shared/identity/embedded/turnstile.ts';
import type { PasswordHasher } from '#shared/identity/password-identity.ts';

export interface Argon2Cost {
  /** KiB. */
  readonly memory: number;
  readonly passes: number;
  readonly parallelism: number;
}

/** Above the least that OWASP asks of argon2id (19 MiB, 2 passes). */
const platformCost: Argon2Cost = { memory: 65_536, passes: 2, parallelism: 1 };
const tagLength = 32;
/** Each one occupies a thread of the four that file and name look-ups need too, and 64 MiB. */
const atOnce = 2;
const mostWaiting = 100;

const derive = promisify(argon2);

/** argon2id off the event loop; hashes in the PHC string format, so that costs can rise later. */
export function createArgon2Hasher(cost = platformCost): PasswordHasher {
  const pass = createTurnstile(atOnce, mostWaiting);
  return {
    async hash(password) {
      const nonce = randomBytes(16);
      const tag = await pass(() => derive('argon2id', { message: password, nonce, tagLength, ...cost }));
      const { memory, passes, parallelism } = cost;
      return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(nonce)}$${unpadded(tag)}`;
    },
    async verify(password, hash) {
      const { nonce, tag, ...parameters } = parse(hash);
      const derived = await pass(() => derive('argon2id', { message: password, nonce, tagLength: tag.length, ...parameters }));
      return timingSafeEqual(derived, tag);
    },
  };
}

function parse(hash: string) {
  const match = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/.exec(hash);
  if (match === null) throw new Error('not a password hash of ours');
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
