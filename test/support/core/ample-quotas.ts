import { type Quotas, quotaNames, unlimited } from '#shared/settings/quotas.ts';

/** So much that no test reaches it by accident, and a limit all the same. */
const ample = unlimited - 1;

export const ampleQuotas = Object.fromEntries(quotaNames.map((name) => [name, ample])) as Record<string, number> as Quotas;

/** The same as a setting. */
export const ampleQuotasSetting = quotaNames.map((name) => `${name}=${ample}`).join(',');
