import { z } from '@hono/zod-openapi';
import { timestamp, uuid } from '#api/openapi/schemas.ts';
import type { ApiToken } from '#shared/core/accounts/accounts.ts';
import type { TokenScope } from '#shared/core/accounts/principals.ts';

export const scopeSchema = z.enum(['read', 'deploy', 'full'] satisfies readonly TokenScope[]).openapi({
  description:
    'What the token may do of what you may: `read` as a viewer, `deploy` as a developer, `full` as you; none of them can give access to others.',
});

const fields = {
  id: uuid,
  name: z.string().openapi({ example: 'ci' }),
  scope: scopeSchema,
  created_at: timestamp,
  expires_at: timestamp.nullable().openapi({ description: 'Null: never.' }),
  last_used_at: timestamp.nullable().openapi({ description: 'To the minute.' }),
};

export const ApiTokenSchema = z.object(fields).openapi('ApiToken');

export const NewApiTokenSchema = z
  .object({
    ...fields,
    token: z.string().openapi({ description: 'Shown this once. Send it as `Authorization: Bearer <token>`.' }),
  })
  .openapi('NewApiToken');

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
