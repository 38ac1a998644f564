import type { ApiToken, ApiTokens } from '#shared/core/accounts/accounts.ts';
import {
  type ApiTokenRow,
  deleteApiToken,
  insertApiToken,
  listApiTokens,
  readApiTokenByHash,
  setApiTokenUsed,
} from '#shared/core/accounts/api-tokens-store.ts';
import { narrowRole, requireLogin } from '#shared/core/accounts/authorization.ts';
import { resolveCaller } from '#shared/core/accounts/callers.ts';
import type { Context } from '#shared/core/context.ts';
import { toKeysetPage, toPage } from '#shared/core/page.ts';
import { addSeconds, millisecondsPerMinute, secondsPerDay } from '#shared/durations.ts';
import { notFound } from '#shared/errors.ts';
import { type ApiTokenId, isUuid, newUuid } from '#shared/ids.ts';
import { hashSecretToken, newSecretToken } from '#shared/secret-token.ts';

/** Every API token starts with it; no access token does. */
export const apiTokenPrefix = 'paas_';

/** `last_used_at` is written at most this often: a write for each request would cost more than it is worth. */
const lastUsedMilliseconds = millisecondsPerMinute;

/** API tokens, of which only a hash is stored. */
export function createApiTokens(context: Context): ApiTokens {
  const { db, clock } = context;
  return {
    async createToken(caller, { id = newUuid(), name, scope, expiresInDays }) {
      const principal = await resolveCaller(context, caller);
      requireLogin(principal);
      const token = newSecretToken(apiTokenPrefix);
      const now = clock.now();
      const row = {
        id,
        tenant_id: principal.tenantId,
        user_id: principal.userId,
        name,
        scope,
        token_hash: await hashSecretToken(token),
        created_at: now,
        expires_at: expiresInDays === undefined ? null : addSeconds(now, expiresInDays * secondsPerDay),
        last_used_at: null,
      };
      await db.transaction().execute(async (trx) => {
        // One of an earlier attempt, whose answer nobody got: its secret is lost.
        await deleteApiToken(trx, principal, id);
        await insertApiToken(trx, row);
      });
      return { ...toApiToken(row), token };
    },

    async listTokens(caller, page) {
      const { userId, tenantId } = await resolveCaller(context, caller);
      return toPage(await listApiTokens(db, { userId, tenantId, ...toKeysetPage(page) }), page.limit, toApiToken);
    },

    async revokeToken(caller, id) {
      const principal = await resolveCaller(context, caller);
      requireLogin(principal);
      const deleted = isUuid(id) && (await deleteApiToken(db, principal, id as ApiTokenId));
      if (!deleted) throw notFound('token');
    },

    async resolveToken(token) {
      const row = await readApiTokenByHash(db, await hashSecretToken(token));
      const now = clock.now();
      if (row === undefined || (row.expires_at !== null && row.expires_at <= now)) return undefined;
      if (row.last_used_at === null || now.getTime() - row.last_used_at.getTime() >= lastUsedMilliseconds)
        await setApiTokenUsed(db, row.id, now);
      const role = narrowRole(row.role, row.scope);
      return { userId: row.user_id, email: row.email, tenantId: row.tenant_id, role, tokenScope: row.scope, tokenId: row.id };
    },
  };
}

function toApiToken(row: ApiTokenRow): ApiToken {
  return {
    id: row.id,
    name: row.name,
    scope: row.scope,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    lastUsedAt: row.last_used_at,
  };
}
