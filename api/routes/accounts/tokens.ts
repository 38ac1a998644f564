import { createRoute, z } from '@hono/zod-openapi';
import { type Api, newResourceId } from '#api/http/api-env.ts';
import {
  answer,
  bearer,
  dataOf,
  guarded,
  idempotencyHeader,
  idParam,
  jsonBody,
  lineOf,
  pageOf,
  pageQuery,
  presentPage,
  refusalsOf,
  toPageQuery,
  withBody,
} from '#api/openapi/schemas.ts';
import { ApiTokenSchema, NewApiTokenSchema, presentApiToken, scopeSchema } from '#api/resources/api-token.ts';
import type { ApiTokens } from '#shared/core/accounts/accounts.ts';
import type { ApiTokenId } from '#shared/ids.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';

const tags = ['tokens'];
const longestDays = 3650;

const createToken = createRoute({
  method: 'post',
  path: '/v1/auth/tokens',
  operationId: 'createApiToken',
  summary: 'Create an API token',
  description:
    'For the tenant you act in. Requires a login: an API token cannot create another. The token is shown once, the platform stores only its hash.',
  tags,
  security: bearer,
  request: {
    headers: idempotencyHeader,
    body: jsonBody(
      z.object({
        name: lineOf(100).min(1).openapi({ example: 'ci' }),
        scope: scopeSchema,
        expires_in_days: z
          .int()
          .min(1)
          .max(longestDays)
          .optional()
          .openapi({ description: 'Default: the token does not expire.', example: 90 }),
      }),
      true,
    ),
  },
  responses: { 201: answer(dataOf(NewApiTokenSchema), 'Created.'), ...guarded, ...withBody, ...refusalsOf(409) },
});

const listTokens = createRoute({
  method: 'get',
  path: '/v1/auth/tokens',
  operationId: 'listApiTokens',
  summary: 'List your API tokens, newest first',
  tags,
  security: bearer,
  request: { query: pageQuery },
  responses: {
    200: answer(pageOf(ApiTokenSchema), 'A page of tokens. The secret tokens are not shown.'),
    ...guarded,
    ...refusalsOf(422),
  },
});

const revokeToken = createRoute({
  method: 'delete',
  path: '/v1/auth/tokens/{token_id}',
  operationId: 'revokeApiToken',
  summary: 'Revoke an API token',
  tags,
  security: bearer,
  request: { params: idParam('token_id', 'Id of the token.') },
  responses: { 204: { description: 'Revoked. The token is refused from now on.' }, ...guarded, ...refusalsOf(404) },
});

/** Adds the routes of API tokens. */
export function addTokenRoutes(api: Api, tokens: Pick<ApiTokens, 'createToken' | 'listTokens' | 'revokeToken'>): void {
  api.openapi(createToken, async (c) => {
    const { name, scope, expires_in_days } = c.req.valid('json');
    const request = omitUndefined({ ...newResourceId<ApiTokenId>(c), name, scope, expiresInDays: expires_in_days });
    const made = await tokens.createToken(c.get('caller'), request);
    return c.json({ data: { ...presentApiToken(made), token: made.token } }, 201);
  });

  api.openapi(listTokens, async (c) => {
    const page = await tokens.listTokens(c.get('caller'), toPageQuery(c.req.valid('query')));
    return c.json(presentPage(page, presentApiToken), 200);
  });

  api.openapi(revokeToken, async (c) => {
    await tokens.revokeToken(c.get('caller'), c.req.valid('param').token_id);
    return c.body(null, 204);
  });
}
