import type { UserId } from '#shared/ids.ts';

/**
 * The id of the user that a sign-up with this Idempotency-Key creates. The same request has the same id, so a repeated one finds
 * the user that the first created. Nothing is stored for it: an answer holds tokens, and a request a password.
 * @param parts all that two equal requests agree in, without the password
 */
export async function signUpId(key: string, parts: readonly (string | undefined)[]): Promise<UserId> {
  const text = JSON.stringify([key, ...parts.map((part) => part ?? null)]);
  const bytes = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
  const hex = bytes.toHex();
  // A UUID of version 8, RFC 9562.
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}` as UserId;
}
