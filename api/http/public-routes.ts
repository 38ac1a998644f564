import { matchedRoutes } from 'hono/route';
import type { ApiContext } from '#api/http/api-env.ts';

/** Counted per source address (SPEC.md §8): they are where passwords and tokens are guessed. */
const perAddress = [
  'POST /v1/signup',
  'POST /v1/auth/login',
  'POST /v1/auth/refresh',
  'POST /v1/auth/logout',
  'GET /v1/auth/jwks.json',
  'GET /v1/auth/.well-known/openid-configuration',
] as const;

/** Cheap answers that monitors and tools read often. */
const unlimited = ['GET /v1/healthz', 'GET /v1/openapi.json', 'GET /v1/openapi.yaml'] as const;

/** For who is known and may belong to no team yet. */
const person = ['POST /v1/invitations/accept'] as const;

/** Guarded by a signature: git hosts deliver as often as people push. */
const signed = ['POST /v1/webhooks/githost'] as const;

export type Access = 'perAddress' | 'unlimited' | 'signed' | 'person' | 'token' | 'noRoute';

/**
 * Who may enter, by exact method and route, never by prefix: what is not listed here needs a token.
 * `noRoute`: nothing is there to guard.
 */
export function accessOf(c: ApiContext): Access {
  const endpoint = matchedRoutes(c).find((route) => route.method !== 'ALL');
  if (endpoint === undefined) return 'noRoute';
  const name = `${endpoint.method} ${endpoint.path}`;
  if ((perAddress as readonly string[]).includes(name)) return 'perAddress';
  if ((signed as readonly string[]).includes(name)) return 'signed';
  if ((person as readonly string[]).includes(name)) return 'person';
  return (unlimited as readonly string[]).includes(name) ? 'unlimited' : 'token';
}
