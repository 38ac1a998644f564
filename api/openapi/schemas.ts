/** Building blocks of requests and responses. */
import { z } from '@hono/zod-openapi';
import type { Page, PageQuery } from '#shared/core/page.ts';
import { type ErrorCode, errorCodes } from '#shared/errors.ts';

/** One line for people: no control characters, which no label needs and no text column takes (NUL). */
export function lineOf(longest: number) {
  return z
    .string()
    .max(longest)
    .regex(/^[^\u0000-\u001f\u007f-\u009f]*$/, 'must not contain control characters');
}

/** Times are ISO 8601, UTC, with milliseconds. */
export const timestamp = z.iso.datetime().openapi({ format: 'date-time', example: '2026-03-01T12:00:00.000Z' });

export const uuid = z.string().openapi({ format: 'uuid', example: '4f6f1b7e-5d0c-4a43-9c8e-0d3a1f5b2c77' });

const ErrorSchema = z
  .object({
    error: z.object({
      code: z.enum(errorCodes satisfies readonly ErrorCode[]),
      message: z.string().openapi({ description: 'For people: what is wrong and what to do.' }),
      request_id: z
        .string()
        .openapi({ description: 'Equals the header `x-request-id`.', example: 'req_3f9a2c1b7d604e5f8a9b0c1d2e3f4a5b' }),
      ts: timestamp,
      details: z
        .array(
          z.object({
            path: z.string().openapi({ description: 'Dotted path of the faulty field, empty for the whole.' }),
            message: z.string(),
          }),
        )
        .optional(),
    }),
  })
  .openapi('Error');

export function dataOf<Schema extends z.ZodType>(schema: Schema) {
  return z.object({ data: schema });
}

export function pageOf<Schema extends z.ZodType>(schema: Schema) {
  return z.object({
    data: z.array(schema),
    next_cursor: z.string().nullable().openapi({ description: 'Give it as `cursor` to read on; null on the last page.' }),
  });
}

export const pageQuery = z.object({
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,200}$/, 'unknown cursor')
    .optional()
    .openapi({ description: '`next_cursor` of the page before.' }),
});

/** A JSON response of a route. */
export function answer<Schema extends z.ZodType>(schema: Schema, description: string) {
  return { description, content: { 'application/json': { schema } } };
}

/** A JSON body of a route. Left out where `required` is false it counts as `{}`. */
export function jsonBody<Schema extends z.ZodType, const Required extends boolean>(schema: Schema, required: Required) {
  return { required, content: { 'application/json': { schema } } };
}

const refusals = {
  400: 'The request could not be read.',
  401: 'No valid access token.',
  403: 'Known, but not allowed to.',
  404: 'Does not exist, or is not yours.',
  409: 'Not in this state of things.',
  413: 'The body is too large.',
  415: 'The body is not JSON.',
  422: 'Well-formed, but not valid; `details` names the fields.',
  429: 'Too many requests; `Retry-After` says how many seconds to wait.',
  500: 'Our fault.',
  503: 'Not ready, as without its database; `Retry-After` says how many seconds to wait.',
} as const;
type RefusalStatus = keyof typeof refusals;
type Refusals<Status extends RefusalStatus> = { [Each in Status]: ReturnType<typeof answer<typeof ErrorSchema>> };

/** The error responses of a route. */
export function refusalsOf<const Status extends RefusalStatus>(...statuses: readonly Status[]): Refusals<Status> {
  return Object.fromEntries(statuses.map((status) => [status, answer(ErrorSchema, refusals[status])])) as Refusals<Status>;
}

/** What any route that needs a token may answer. */
export const guarded = refusalsOf(401, 403, 429, 500, 503);
/** What any route with a body may answer on top. */
export const withBody = refusalsOf(400, 413, 415, 422);

const key = /^[A-Za-z0-9-]{1,64}$/;

/** Malformed ones cannot exist: the hook of create-api.ts answers `not_found` for a parameter that does not match. */
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
    .openapi({ param: { name: 'host', in: 'path' }, description: 'The host.', example: 'www.example.com' }),
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
export const addonParams = appParams.extend({
  addon_type: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/)
    .openapi({ param: { name: 'addon_type', in: 'path' }, description: 'Type of the add-on.', example: 'kvstore' }),
});
export const sshKeyParams = z.object({
  key: z
    .string()
    .regex(/^(SHA256:[A-Za-z0-9+/]{43}|[0-9a-f-]{36})$/)
    .openapi({ param: { name: 'key', in: 'path' }, description: 'Id of the key, or its fingerprint (URL-encoded).' }),
});

/** The one path parameter of a route that takes nothing but a UUID. */
export function idParam<const Name extends string>(name: Name, description: string) {
  const schema = z
    .string()
    .regex(/^[0-9a-f-]{36}$/)
    .openapi({ param: { name, in: 'path' }, description });
  return z.object({ [name]: schema } as { [Each in Name]: typeof schema });
}

/** Routes behind a token name the scheme; public ones say `security: []`. */
export const bearer: Record<string, string[]>[] = [{ bearer: [] }];

export const idempotencyHeader = z.object({
  'idempotency-key': z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/)
    .optional()
    .openapi({ description: 'With the same key and body the first answer is given again, for 24 hours.' }),
});

/** What a validated query says, in the words of the services. */
export function toPageQuery(query: z.infer<typeof pageQuery>): PageQuery {
  return { limit: query.limit, ...(query.cursor === undefined ? {} : { cursor: query.cursor }) };
}

export function presentPage<Item, Presented>(
  page: Page<Item>,
  present: (item: Item) => Presented,
): { data: Presented[]; next_cursor: string | null } {
  return { data: page.items.map(present), next_cursor: page.nextCursor };
}
