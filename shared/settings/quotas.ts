/** What a tenant may have at most. A unit is at the end of each name that needs one. */
export const defaultQuotas = {
  /** Without previews. */
  apps: 10,
  /** Of all apps and previews together. */
  instances: 20,
  /** Of these instances; each has 512 MiB. */
  memory_mib: 10_240,
  /** Also those that fail, are canceled or superseded. */
  builds_per_hour: 60,
  kvstores: 3,
  /** Of all servers of the key-value stores. */
  kvstore_memory_mib: 3072,
  databases: 3,
} as const satisfies Record<string, number>;

/** The name of a quota. */
export type QuotaName = keyof typeof defaultQuotas;

/** A limit for each quota. */
export type Quotas = Readonly<Record<QuotaName, number>>;

/** All names, in the order in which they are shown. */
export const quotaNames = Object.keys(defaultQuotas) as readonly QuotaName[];

/** The largest quota, which stands for no limit. */
export const unlimited = 1_000_000;

/** Of the operator's own tenant: whoever owns the machine needs no protection from themselves. */
export const operatorQuotas = Object.fromEntries(quotaNames.map((name) => [name, unlimited])) as Record<
  QuotaName,
  number
> as Quotas;

export const quotasMessage = `must be quotas such as apps=20,instances=40 with whole numbers from 0 to ${unlimited}, which is no limit; there are: ${quotaNames.join(', ')}`;

/**
 * Reads `name=number` pairs, with commas or white space in between. The last one of a name counts.
 * @returns undefined when one of them is no quota
 */
export function parseQuotas(text: string): Partial<Quotas> | undefined {
  const quotas: Partial<Record<QuotaName, number>> = {};
  for (const pair of text.split(/[\s,]+/).filter((part) => part !== '')) {
    const [, given, digits] = /^([a-z_]+)=(\d{1,7})$/.exec(pair) ?? [];
    const name = quotaNames.find((candidate) => candidate === given);
    const limit = Number(digits);
    if (name === undefined || limit > unlimited) return undefined;
    quotas[name] = limit;
  }
  return quotas;
}
