/** `prefix` and 256 bits nobody can guess, so that a fast hash of it is enough to keep. Prefixes let scanners for leaked secrets find them. */
export function newSecretToken(prefix: string): string {
  return prefix + crypto.getRandomValues(new Uint8Array(32)).toBase64({ alphabet: 'base64url', omitPadding: true });
}

/** Hex SHA-256: what is kept of a secret token. */
export async function hashSecretToken(token: string): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token))).toHex();
}
