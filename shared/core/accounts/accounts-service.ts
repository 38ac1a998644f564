import type { Accounts } from '#shared/core/accounts/accounts.ts';
import { resolveCaller } from '#shared/core/accounts/callers.ts';
import { acceptInvitation, checkInvitation } from '#shared/core/accounts/invitations.ts';
import { checkSignUpIsOpen, createFirstTenant, firstTenantName } from '#shared/core/accounts/tenant-creation.ts';
import { readTenant } from '#shared/core/accounts/tenants-store.ts';
import type { Context } from '#shared/core/context.ts';

export function createAccounts(context: Context): Accounts {
  const { db, identity } = context;
  return {
    async signUp({ email, password, tenantName, source, invitation }) {
      if (invitation === undefined) await checkSignUpIsOpen(context);
      else await checkInvitation(context, email, invitation);
      const user = await identity.createUser(email, password, source);
      const person = { userId: user.id, email: user.email };
      if (invitation !== undefined) {
        const { id, name } = await acceptInvitation(context, person, invitation);
        return { user, tenant: { id, name }, tokens: await identity.issueTokens(user) };
      }
      const tenant = await createFirstTenant(db, person, tenantName ?? firstTenantName(user.email));
      return { user, tenant, tokens: await identity.issueTokens(user) };
    },

    resolvePrincipal: (caller) => resolveCaller(context, caller),

    async readSelf(caller) {
      const principal = await resolveCaller(context, caller);
      return { principal, tenant: await readTenant(db, principal.tenantId) };
    },
  };
}
