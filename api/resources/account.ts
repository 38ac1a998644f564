import { z } from '@hono/zod-openapi';
import { uuid } from '#api/openapi/schemas.ts';
import type { Principal, Role, Tenant } from '#shared/core/accounts/principals.ts';
import type { TokenSet } from '#shared/identity/identity.ts';

const TenantSchema = z.object({ id: z.string().openapi({ example: 'k3v9x2ab' }), name: z.string() }).openapi('Tenant');

const tokenFields = {
  access_token: z.string().openapi({ description: 'A JWT. Send it as `Authorization: Bearer <access_token>`.' }),
  token_type: z.literal('Bearer'),
  expires_in: z.int().openapi({ description: 'Seconds until the access token expires.', example: 3600 }),
  refresh_token: z.string().openapi({ description: 'Can be used once.' }),
};

export const TokensSchema = z.object(tokenFields).openapi('Tokens');

export const SignupSchema = z
  .object({ user: z.object({ id: uuid, email: z.string() }), tenant: TenantSchema, ...tokenFields })
  .openapi('Signup');

/** Roles of a member, the highest first. */
export const roleSchema = z.enum(['owner', 'admin', 'developer', 'viewer'] satisfies readonly Role[]);

export const UserSchema = z.object({ id: z.string(), email: z.string(), role: roleSchema, tenant: TenantSchema }).openapi('User');

/** A session's tokens as the API answers them. */
export function presentTokens(tokens: TokenSet): z.infer<typeof TokensSchema> {
  return {
    access_token: tokens.accessToken,
    token_type: 'Bearer',
    expires_in: tokens.expiresIn,
    refresh_token: tokens.refreshToken,
  };
}

/** The caller, with the tenant that the call is for. */
export function presentUser(principal: Principal, tenant: Tenant): z.infer<typeof UserSchema> {
  return { id: principal.userId, email: principal.email, role: principal.role, tenant: { id: tenant.id, name: tenant.name } };
}
