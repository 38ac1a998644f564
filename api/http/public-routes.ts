import { matchedRoutes } from 'hono/route';
import type { ApiContext } from '#api/http/api-env.ts';

/** Limited per source address (SPEC.md §8). */
const perAddress = [
  'POST /v1/signup',
  'POST /v1/auth/refresh',
  'POST /v1/auth/logout',
  'GET /v1/auth/jwks.json',
  'GET /v1/auth/.well-known/openid-configuration',
] as const;

/** Limited like those, and refused to a source with many failed credentials of other kinds: a password can be guessed. */
const password = ['POST /v1/auth/login'] as const;

/** Cheap answers that monitoring and tools read often. */
const unlimited = ['GET /v1/healthz', 'GET /v1/openapi.json', 'GET /v1/openapi.yaml'] as const;

/** Need a token, but no membership of a tenant. */
const person = ['POST /v1/invitations/accept'] as const;

/** Authenticated by a signature. Only failures are limited, because git hosts deliver as often as people push. */
const signed = ['POST /v1/webhooks/githost'] as const;

/** Authenticated by a token of one build. Only failures are limited, because pipelines wait for the answer. */
const ofBuild = ['GET /v1/internal/builds/:bid/source', 'POST /v1/internal/builds/:bid/complete'] as const;

/** Routes whose callers send many requests, so that only their failures are limited: 'GET /v1/internal/builds/:bid/source'. */
export const limitedOnFailure: readonly string[] = [...signed, ...ofBuild];

/** What a route asks of its caller, see the lists above. `noRoute`: no route matches the request. */
export type Access = 'perAddress' | 'password' | 'unlimited' | 'signed' | 'ofBuild' | 'person' | 'token' | 'noRoute';

/** Matches the exact method and route, never a prefix. A route that is not listed above needs a token. */
export function accessOf(c: ApiContext): Access {
  const endpoint = matchedRoutes(c).find((route) => route.method !== 'ALL');
  if (endpoint === undefined) return 'noRoute';
  const name = `${endpoint.method} ${endpoint.path}`;
  if ((perAddress as readonly string[]).includes(name)) return 'perAddress';
  if ((password as readonly string[]).includes(name)) return 'password';
  if ((signed as readonly string[]).includes(name)) return 'signed';
  if ((ofBuild as readonly string[]).includes(name)) return 'ofBuild';
  if ((person as readonly string[]).includes(name)) return 'person';
  return (unlimited as readonly string[]).includes(name) ? 'unlimited' : 'token';
}
