import type { Clock } from '#shared/clock.ts';
import type { TokenSubject } from '#shared/identity/identity.ts';

/** The result of verifying an access token. */
export interface VerifiedToken {
  subject: TokenSubject;
  /** Its `exp`, in seconds since the epoch. */
  expires: number;
}

const mostTokens = 10_000;

/**
 * Caches verified tokens until they expire. The signature of a token cannot become invalid, so only the time is checked again.
 * The cache key is the whole token.
 */
export function cacheVerified(
  verify: (token: string) => Promise<VerifiedToken>,
  clock: Clock,
): (token: string) => Promise<TokenSubject> {
  const verified = new Map<string, VerifiedToken>();
  return async (token) => {
    const known = verified.get(token);
    if (known !== undefined && clock.now().getTime() < known.expires * 1000) return known.subject;
    verified.delete(token);
    const fresh = await verify(token);
    // Drops the oldest entries; a token that is still in use is verified again.
    if (verified.size >= mostTokens) for (const oldest of [...verified.keys()].slice(0, mostTokens / 10)) verified.delete(oldest);
    verified.set(token, fresh);
    return fresh.subject;
  };
}
