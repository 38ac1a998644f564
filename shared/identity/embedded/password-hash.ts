/** Cost parameters of argon2id (RFC 9106). */
export interface Argon2Cost {
  /** KiB. */
  readonly memory: number;
  readonly passes: number;
  readonly parallelism: number;
}

/** Above OWASP's minimum for argon2id (19 MiB, 2 passes). */
export const platformCost: Argon2Cost = { memory: 65_536, passes: 2, parallelism: 1 };
/** Bytes. */
export const tagLength = 32;
/** Bytes. */
export const nonceLength = 16;

/** A stored hash of a password: a PHC string, so that every hasher reads those of the others, and costs can rise later. */
export interface PasswordHash extends Argon2Cost {
  readonly nonce: Uint8Array;
  readonly tag: Uint8Array;
}

/** The encoded form of Argon2: `$argon2id$v=19$m=…,t=…,p=…$salt$hash`. */
export function formatPasswordHash({ memory, passes, parallelism, nonce, tag }: PasswordHash): string {
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(nonce)}$${unpadded(tag)}`;
}

/** @throws Error for text that `formatPasswordHash` did not make */
export function parsePasswordHash(hash: string): PasswordHash {
  const match = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/.exec(hash);
  if (match === null) throw new Error('malformed password hash');
  const [memory, passes, parallelism] = match.slice(1, 4).map(Number) as [number, number, number];
  return {
    memory,
    passes,
    parallelism,
    nonce: Uint8Array.fromBase64(match[4] ?? ''),
    tag: Uint8Array.fromBase64(match[5] ?? ''),
  };
}

function unpadded(bytes: Uint8Array): string {
  return bytes.toBase64({ omitPadding: true });
}
