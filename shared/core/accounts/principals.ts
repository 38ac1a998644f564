import type { AppRow } from '#shared/core/apps/apps-store.ts';
import type { Role, TokenScope } from '#shared/database/schema.ts';
import type { TenantId, UserId } from '#shared/ids.ts';

/** Somebody known, in the tenant they act for. */
export interface Principal {
  userId: UserId;
  email: string;
  tenantId: TenantId;
  /** What they may do now: the member's role, or less when an API token speaks for them. */
  role: Role;
  /** Set when an API token speaks for them; unset for logins and SSH keys. */
  tokenScope?: TokenScope;
  /** Set when a request that only reads was resolved together with the app it names. */
  namedApp?: NamedApp;
}

/** What there was under an id or a name when the membership was read: one statement saw both. */
export interface NamedApp {
  idOrName: string;
  row: AppRow | undefined;
}

/** Somebody known, wherever they belong. */
export type Person = Pick<Principal, 'userId' | 'email' | 'tokenScope'>;

export interface Tenant {
  id: TenantId;
  name: string;
}
