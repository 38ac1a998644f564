import type { Role } from '#shared/database/schema.ts';
import type { TenantId, UserId } from '#shared/ids.ts';

/** Somebody known, in the tenant they act for. */
export interface Principal {
  userId: UserId;
  email: string;
  tenantId: TenantId;
  role: Role;
}

export interface Tenant {
  id: TenantId;
  name: string;
}
