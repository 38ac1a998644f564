import type { Selectable } from 'kysely';
import type { ApiToken, ApiTokens } from '#shared/core/accounts/accounts.ts';
import { narrowRole, requireLogin } from '#shared/core/accounts/authorization.ts';
import type { Context } from '#shared/core/context.ts';
import { toKeysetPage, toPage } from '#shared/core/page.ts';
import { keysetBefore } from '#shared/database/keyset.ts';
import type { Database } from '#shared/database/schema.ts';
import { notFound } from '#shared/errors.ts';
import { type ApiTokenId, isUuid, newUuid } from '#shared/ids.ts';
import { hashSecretToken, newSecretToken } from '#shared/secret-token.ts';

export const apiTokenPrefix = 'paas_';
const dayMilliseconds = 86_400_000;
/** `last_used_at` is that true; a write for each request would cost more than it tells. */
const lastUsedMilliseconds = 60_000;

export function createApiTokens({ db, clock }: Context): ApiTokens {
  return {
    async createToken(principal, { name, scope, expiresInDays }) {
      requireLogin(principal);
      const token = newSecretToken(apiTokenPrefix);
      const now = clock.now();
      const row = {
        id: newUuid<ApiTokenId>(),
        tenant_id: principal.tenantId,
        user_id: principal.userId,
        name,
        scope,
        token_hash: await hashSecretToken(token),
        created_at: now,
        expires_at: expiresInDays === undefined ? null : new Date(now.getTime() + expiresInDays * dayMilliseconds),
        last_used_at: null,
      };
      await db.insertInto('api_tokens').values(row).execute();
      return { ...toApiToken(row), token };
    },

    async listTokens(principal, page) {
      const { before, limit } = toKeysetPage(page);
      const rows = await db
        .selectFrom('api_tokens')
        .selectAll()
        .where('user_id', '=', principal.userId)
        .where('tenant_id', '=', principal.tenantId)
        .where(keysetBefore(before))
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .limit(limit)
        .execute();
      return toPage(rows, page.limit, toApiToken);
    },

    async revokeToken(principal, id) {
      requireLogin(principal);
      if (!isUuid(id)) throw notFound('token');
      const result = await db
        .deleteFrom('api_tokens')
        .where('user_id', '=', principal.userId)
        .where('tenant_id', '=', principal.tenantId)
        .where('id', '=', id as ApiTokenId)
        .executeTakeFirst();
      if (result.numDeletedRows === 0n) throw notFound('token');
    },

    async resolveToken(token) {
      const hash = await hashSecretToken(token);
      const row = await db
        .selectFrom('api_tokens')
        .innerJoin('memberships', (join) =>
          join
            .onRef('memberships.user_id', '=', 'api_tokens.user_id')
            .onRef('memberships.tenant_id', '=', 'api_tokens.tenant_id'),
        )
        .selectAll('api_tokens')
        .select(['memberships.email', 'memberships.role'])
        .where('token_hash', '=', hash)
        .executeTakeFirst();
      const now = clock.now();
      if (row === undefined || (row.expires_at !== null && row.expires_at <= now)) return undefined;
      if (row.last_used_at === null || now.getTime() - row.last_used_at.getTime() >= lastUsedMilliseconds) {
        await db.updateTable('api_tokens').set({ last_used_at: now }).where('id', '=', row.id).execute();
      }
      const role = narrowRole(row.role, row.scope);
      return { userId: row.user_id, email: row.email, tenantId: row.tenant_id, role, tokenScope: row.scope };
    },
  };
}

function toApiToken(row: Selectable<Database['api_tokens']>): ApiToken {
  return {
    id: row.id,
    name: row.name,
    scope: row.scope,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    lastUsedAt: row.last_used_at,
  };
}
