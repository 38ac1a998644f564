import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { Refusal } from '#api/http/refusal.ts';
import type { Caller } from '#shared/core/accounts/principals.ts';

/** What the middleware leaves for the handlers. */
export interface ApiEnv {
  Variables: {
    /** `req_…`, unique to this request. */
    requestId: string;
    /** Whose token it is. Set on every route that needs a token. */
    caller: Caller;
    /** What to answer for something thrown; logs what is our fault. */
    refuse: (error: unknown) => Refusal;
    /** Of what a request with an Idempotency-Key makes: the same each time it is sent. */
    resourceId?: string;
  };
}

export type Api = OpenAPIHono<ApiEnv>;
export type ApiContext = Context<ApiEnv>;

/** The id that what a request makes is to get; none where the request names no key. */
export function idToMake<Id extends string>(c: ApiContext): { id?: Id } {
  const id = c.get('resourceId');
  return id === undefined ? {} : { id: id as Id };
}
