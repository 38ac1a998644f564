/** Building blocks for the requests and responses of routes. */
import { z } from '@hono/zod-openapi';
import type { Page, PageQuery } from '#shared/core/page.ts';
import { type ErrorCode, errorCodes } from '#shared/errors.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';

/** A line of text without control characters. PostgreSQL cannot store NUL. @param longest in characters */
export function lineOf(longest: number) {
  return z
    .string()
    .max(longest)
    .regex(/^[^\u0000-\u001f\u007f-\u009f]*$/, 'must not contain control characters');
}

/** ISO 8601, UTC, with milliseconds. */
export const timestamp = z.iso.datetime().openapi({ format: 'date-time', example: '2026-03-01T12:00:00.000Z' });

/** An id in an answer. */
export const uuid = z.string().openapi({ format: 'uuid', example: '4f6f1b7e-5d0c-4a43-9c8e-0d3a1f5b2c77' });

const ErrorSchema = z
  .object({
    error: z.object({
      code: z.enum(errorCodes satisfies readonly ErrorCode[]),
      message: z.string().openapi({ description: 'What is wrong and how to fix it, for people.' }),
      request_id: z
        .string()
        .openapi({ description: 'Equals the header `x-request-id`.', example: 'req_3f9a2c1b7d604e5f8a9b0c1d2e3f4a5b' }),
      ts: timestamp,
      details: z
        .array(
          z.object({
            path: z.string().openapi({ description: 'Dotted path of the field. Empty: the whole request.' }),
            message: z.string(),
          }),
        )
        .optional(),
    }),
  })
  .openapi('Error');

/** `{data}`: the envelope of a success. */
export function dataOf<Schema extends z.ZodType>(schema: Schema) {
  return z.object({ data: schema });
}

/** `{data, next_cursor}`: the envelope of a list. */
export function pageOf<Schema extends z.ZodType>(schema: Schema) {
  return z.object({
    data: z.array(schema),
    next_cursor: z
      .string()
      .nullable()
      .openapi({ description: 'Pass it as `cursor` to get the next page. Null on the last page.' }),
  });
}

/** A list that is never longer than one page, in the envelope of every list. */
export function presentWhole<Item, Presented>(
  items: readonly Item[],
  present: (item: Item) => Presented,
): { data: Presented[]; next_cursor: null } {
  return { data: items.map(present), next_cursor: null };
}

/** Query parameters of a list. */
export const pageQuery = z.object({
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,200}$/, 'unknown cursor')
    .optional()
    .openapi({ description: '`next_cursor` of the previous page.' }),
});

/** A JSON response of a route. */
export function answer<Schema extends z.ZodType>(schema: Schema, description: string) {
  return { description, content: { 'application/json': { schema } } };
}

/** A JSON body of a route. Without `required` a missing body counts as `{}`. */
export function jsonBody<Schema extends z.ZodType, const Required extends boolean>(schema: Schema, required: Required) {
  return { required, content: { 'application/json': { schema } } };
}

const refusals = {
  400: 'Malformed request.',
  401: 'Missing or invalid access token.',
  403: 'Permission denied.',
  404: 'Not found, or not visible to you.',
  409: 'Conflict with the current state.',
  413: 'The body is too large.',
  415: 'The body is not JSON.',
  422: 'Invalid request. `details` names the fields.',
  429: 'Too many requests. `Retry-After` is the number of seconds to wait.',
  500: 'Internal error.',
  503: 'Unavailable, for example without the database. `Retry-After` is the number of seconds to wait.',
} as const;
type RefusalStatus = keyof typeof refusals;
type Refusals<Status extends RefusalStatus> = { [Each in Status]: ReturnType<typeof answer<typeof ErrorSchema>> };

/** The error responses of a route. */
export function refusalsOf<const Status extends RefusalStatus>(...statuses: readonly Status[]): Refusals<Status> {
  return Object.fromEntries(statuses.map((status) => [status, answer(ErrorSchema, refusals[status])])) as Refusals<Status>;
}

/** Error responses of every route that needs a token. */
export const guarded = refusalsOf(401, 403, 429, 500, 503);
/** Error responses that a route with a body has as well. */
export const withBody = refusalsOf(400, 413, 415, 422);

const key = /^[A-Za-z0-9-]{1,64}$/;

/** Path parameters. A value that does not match is answered by `not_found` (create-api.ts): nothing can have such an id. */
export const appParams = z.object({
  id: z
    .string()
    .regex(key)
    .openapi({ param: { name: 'id', in: 'path' }, description: 'Id or name of the app.', example: 'hello' }),
});
export const buildParams = appParams.extend({
  bid: z
    .string()
    .regex(key)
    .openapi({ param: { name: 'bid', in: 'path' }, description: 'Id of the build, or `latest`.', example: 'latest' }),
});
export const domainParams = appParams.extend({
  host: z
    .string()
    .min(1)
    .max(253)
    .openapi({ param: { name: 'host', in: 'path' }, description: 'Host name.', example: 'www.example.com' }),
});
export const releaseParams = appParams.extend({
  rid: z
    .string()
    .regex(key)
    .openapi({ param: { name: 'rid', in: 'path' }, description: 'Id or version of the release.', example: 'v6' }),
});
export const processParams = appParams.extend({
  type: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/)
    .openapi({ param: { name: 'type', in: 'path' }, description: 'Process type.', example: 'web' }),
});
export const runParams = appParams.extend({
  run: z
    .string()
    .regex(key)
    .openapi({ param: { name: 'run', in: 'path' }, description: 'Id of the run, from its first event.' }),
});
export const addonParams = appParams.extend({
  addon_type: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/)
    .openapi({ param: { name: 'addon_type', in: 'path' }, description: 'Type of the add-on.', example: 'kvstore' }),
});
/** The key of a path, by id or fingerprint. */
export const sshKeyParams = z.object({
  key: z
    .string()
    .regex(/^(SHA256:[A-Za-z0-9+/]{43}|[0-9a-f-]{36})$/)
    .openapi({ param: { name: 'key', in: 'path' }, description: 'Id or fingerprint (URL-encoded) of the key.' }),
});

/** The only path parameter of a route, a UUID. */
export function idParam<const Name extends string>(name: Name, description: string) {
  const schema = z
    .string()
    .regex(/^[0-9a-f-]{36}$/)
    .openapi({ param: { name, in: 'path' }, description });
  return z.object({ [name]: schema } as { [Each in Name]: typeof schema });
}

/** `security` of a route that needs a token. Public routes have `security: []`. */
export const bearer: Record<string, string[]>[] = [{ bearer: [] }];

/** Request headers of a route that creates something. */
export const idempotencyHeader = z.object({
  'idempotency-key': z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/)
    .optional()
    .openapi({
      description: 'A request with the same key and body gets the first answer again, for 24 hours. Another body is a conflict.',
    }),
});

/** A validated query in the form that core takes. */
export function toPageQuery(query: z.infer<typeof pageQuery>): PageQuery {
  return omitUndefined({ limit: query.limit, cursor: query.cursor });
}

/** A page of core in the envelope of a list. */
export function presentPage<Item, Presented>(
  page: Page<Item>,
  present: (item: Item) => Presented,
): { data: Presented[]; next_cursor: string | null } {
  return { data: page.items.map(present), next_cursor: page.nextCursor };
}
