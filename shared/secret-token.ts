/**
 * A random token of 256 bits, so that a fast hash of it is safe to store.
 * @param prefix lets secret scanners recognize leaked tokens
 */
export function newSecretToken(prefix: string): string {
  return prefix + crypto.getRandomValues(new Uint8Array(32)).toBase64({ alphabet: 'base64url', omitPadding: true });
}

/** Hex SHA-256: the form in which secret tokens are stored. */
export async function hashSecretToken(token: string): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token))).toHex();
}
