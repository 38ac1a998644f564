import { z } from '@hono/zod-openapi';
import { timestamp, uuid } from '#api/openapi/schemas.ts';
import type { ApiToken } from '#shared/core/accounts/accounts.ts';
import type { TokenScope } from '#shared/core/accounts/principals.ts';

/** Scopes of an API token, the lowest first. */
export const scopeSchema = z.enum(['read', 'deploy', 'full'] satisfies readonly TokenScope[]).openapi({
  description:
    '`read` has the permissions of a viewer, `deploy` those of a developer, `full` yours. No token can give access to other people.',
});

const fields = {
  id: uuid,
  name: z.string().openapi({ example: 'ci' }),
  scope: scopeSchema,
  created_at: timestamp,
  expires_at: timestamp.nullable().openapi({ description: 'Null: the token does not expire.' }),
  last_used_at: timestamp.nullable().openapi({ description: 'Rounded to the minute. Null: never used.' }),
};

export const ApiTokenSchema = z.object(fields).openapi('ApiToken');

export const NewApiTokenSchema = z
  .object({
    ...fields,
    token: z.string().openapi({ description: 'Shown only in this answer. Send it as `Authorization: Bearer <token>`.' }),
  })
  .openapi('NewApiToken');

/** An API token without its secret, which is shown once, when it is created. */
export function presentApiToken(token: ApiToken): z.infer<typeof ApiTokenSchema> {
  return {
    id: token.id,
    name: token.name,
    scope: token.scope,
    created_at: token.createdAt.toISOString(),
    expires_at: token.expiresAt?.toISOString() ?? null,
    last_used_at: token.lastUsedAt?.toISOString() ?? null,
  };
}
