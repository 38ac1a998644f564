import type { Clock } from '#shared/clock.ts';
import type { TokenSubject } from '#shared/identity/identity.ts';

export interface VerifiedToken {
  subject: TokenSubject;
  /** Its `exp`, in seconds since the epoch. */
  expires: number;
}

const mostTokens = 10_000;

/**
 * Verifies a token once: its signature holds as long as the token does, so that all that can change is the time. Keys are
 * whole tokens; one changed bit makes another.
 */
export function rememberVerified(
  verify: (token: string) => Promise<VerifiedToken>,
  clock: Clock,
): (token: string) => Promise<TokenSubject> {
  const verified = new Map<string, VerifiedToken>();
  return async (token) => {
    const known = verified.get(token);
    if (known !== undefined && clock.now().getTime() < known.expires * 1000) return known.subject;
    verified.delete(token);
    const fresh = await verify(token);
    // The oldest go first; who still uses theirs is verified again.
    if (verified.size >= mostTokens) for (const oldest of [...verified.keys()].slice(0, mostTokens / 10)) verified.delete(oldest);
    verified.set(token, fresh);
    return fresh.subject;
  };
}
