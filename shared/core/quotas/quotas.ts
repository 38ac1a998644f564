/** What a tenant may have at most, and what it has. */
import type { Caller } from '#shared/core/accounts/principals.ts';
import type { QuotaName } from '#shared/settings/quotas.ts';

/** A limit of a tenant. */
export interface Quota {
  name: QuotaName;
  limit: number;
  used: number;
}

export interface TenantQuotas {
  /** Of the caller's tenant, in a fixed order. */
  listQuotas(caller: Caller): Promise<Quota[]>;
}
