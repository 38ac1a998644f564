import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { Refusal } from '#api/http/refusal.ts';
import type { Caller } from '#shared/core/accounts/principals.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';

/** The variables that middleware sets for handlers. */
export interface ApiEnv {
  Variables: {
    /** `req_…`, unique to this request. */
    requestId: string;
    /** The owner of the token. Set on every route that needs one. */
    caller: Caller;
    /** Verifies the token again, for answers that last. @throws AppError `unauthorized` when it has expired or was revoked */
    verifyAgain: () => Promise<Caller>;
    /** The answer for an error. Logs internal errors. */
    refuse: (error: unknown) => Refusal;
    /** The id of the resource that a request with an Idempotency-Key creates: the same each time it is sent. */
    resourceId?: string;
  };
}

/** The application of hono that routes are added to. */
export type Api = OpenAPIHono<ApiEnv>;
/** A request in a handler or middleware. */
export type ApiContext = Context<ApiEnv>;

/** The id of the resource to create. Passing an existing id returns that resource. Empty without an Idempotency-Key. */
export function newResourceId<Id extends string>(c: ApiContext): { id?: Id } {
  return omitUndefined({ id: c.get('resourceId') as Id | undefined });
}
