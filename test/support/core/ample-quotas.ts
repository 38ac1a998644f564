import { type Quotas, quotaNames } from '#shared/settings/quotas.ts';

/** So much that no test reaches it by accident. */
export const ampleQuotas = Object.fromEntries(quotaNames.map((name) => [name, 100_000])) as Record<string, number> as Quotas;

/** The same as a setting. */
export const ampleQuotasSetting = quotaNames.map((name) => `${name}=100000`).join(',');
