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
}

export interface Tenant {
  id: TenantId;
  name: string;
}
