import type { Sessions } from '#shared/core/accounts/accounts.ts';
import { deleteApiTokensOf } from '#shared/core/accounts/api-tokens-store.ts';
import { requireLogin, requireOwnIssuer } from '#shared/core/accounts/authorization.ts';
import { resolveCaller } from '#shared/core/accounts/callers.ts';
import type { Caller, Principal } from '#shared/core/accounts/principals.ts';
import { deleteSshKeysOf } from '#shared/core/accounts/ssh-keys-store.ts';
import type { Context } from '#shared/core/context.ts';
import { toKeysetPage, toPage } from '#shared/core/page.ts';
import { notFound } from '#shared/errors.ts';
import { isUuid, type SessionId } from '#shared/ids.ts';

/** The sessions of a user: login families of refresh tokens. */
export function createSessions(context: Context): Sessions {
  const { db, identity } = context;
  const resolve = async (caller: Caller): Promise<Principal> => {
    const principal = await resolveCaller(context, caller);
    requireLogin(principal);
    requireOwnIssuer(identity);
    return principal;
  };
  return {
    async listSessions(caller, page) {
      const { userId, sessionId } = await resolve(caller);
      const sessions = await identity.listSessions(userId, toKeysetPage(page));
      const rows = sessions.map((session) => ({ ...session, created_at: session.createdAt }));
      return toPage(rows, page.limit, (session) => ({ ...session, current: session.id === sessionId }));
    },

    async endSession(caller, id) {
      const { userId } = await resolve(caller);
      const ended = isUuid(id) ? await identity.endSessions(userId, { only: id as SessionId }) : 0;
      if (ended === 0) throw notFound('session');
    },

    async endSessions(caller, { which, sshKeys, apiTokens }) {
      const { userId, sessionId } = await resolve(caller);
      // Keys and tokens first: if this is interrupted, the caller's session is left to do it again.
      return {
        sshKeys: sshKeys ? await deleteSshKeysOf(db, userId) : 0,
        apiTokens: apiTokens ? await deleteApiTokensOf(db, userId) : 0,
        sessions: await identity.endSessions(userId, which === 'others' ? { except: sessionId } : {}),
      };
    },
  };
}
