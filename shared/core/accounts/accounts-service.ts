import type { Accounts } from '#shared/core/accounts/accounts.ts';
import { requireLogin, requireOwnIssuer } from '#shared/core/accounts/authorization.ts';
import { resolveCaller } from '#shared/core/accounts/callers.ts';
import { acceptInvitation, checkInvitation } from '#shared/core/accounts/invitations.ts';
import { setEmailOf } from '#shared/core/accounts/memberships-store.ts';
import { countSignUp } from '#shared/core/accounts/sign-up-limit.ts';
import { resumeSignUp } from '#shared/core/accounts/sign-up-resumption.ts';
import {
  checkAccountsAreGiven,
  checkSignUpIsOpen,
  createFirstTenant,
  firstTenantName,
} from '#shared/core/accounts/tenant-creation.ts';
import { readTenant } from '#shared/core/accounts/tenants-store.ts';
import type { Context } from '#shared/core/context.ts';
import { AppError } from '#shared/errors.ts';

/** Sign-up, login and the account itself. Passwords and tokens are the business of `context.identity`. */
export function createAccounts(context: Context): Accounts {
  const { db, identity } = context;
  return {
    async signUp({ id, email, password, tenantName, origin, invitation }) {
      checkAccountsAreGiven(context.settings);
      const before = id && (await resumeSignUp(context, { id, email, password, origin }));
      if (before !== undefined) return before;
      if (invitation === undefined) await checkSignUpIsOpen(context);
      else await checkInvitation(context, email, invitation);
      const create = () => identity.createUser(email, password, origin?.source, id);
      const user = await (invitation === undefined ? countSignUp(context, origin, create) : create());
      const person = { userId: user.id, email: user.email };
      if (invitation !== undefined) {
        const { id, name } = await acceptInvitation(context, person, invitation);
        return { user, tenant: { id, name }, tokens: await identity.issueTokens(user, origin) };
      }
      const tenant = await createFirstTenant(db, person, tenantName ?? firstTenantName(user.email));
      return { user, tenant, tokens: await identity.issueTokens(user, origin) };
    },

    resolvePrincipal: (caller) => resolveCaller(context, caller),

    async readSelf(caller) {
      const principal = await resolveCaller(context, caller);
      return { principal, tenant: await readTenant(db, principal.tenantId) };
    },

    async changeSelf(caller, change, source) {
      const principal = await resolveCaller(context, caller);
      requireLogin(principal);
      requireOwnIssuer(identity);
      if (change.email === undefined && change.password === undefined) {
        const details = ['email', 'password'].map((path) => ({ path, message: 'is required, or the other' }));
        throw new AppError('validation_failed', 'Give a new `email`, a new `password`, or both.', { details });
      }
      const { email } = await identity.changeCredentials(principal.userId, change, source);
      if (change.email !== undefined) await setEmailOf(db, principal.userId, email);
      if (change.password !== undefined) await identity.endSessions(principal.userId, { except: principal.sessionId });
      return { principal: { ...principal, email }, tenant: await readTenant(db, principal.tenantId) };
    },
  };
}
