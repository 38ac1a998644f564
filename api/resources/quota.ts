import { z } from '@hono/zod-openapi';
import type { Quota } from '#shared/core/quotas/quotas.ts';
import { type QuotaName, quotaNames, unlimited } from '#shared/settings/quotas.ts';

export const QuotaSchema = z
  .object({
    name: z
      .enum(quotaNames as [QuotaName, ...QuotaName[]])
      .openapi({ description: 'What is limited. `_mib`: in MiB.', example: 'apps' }),
    limit: z.int().nullable().openapi({ description: 'The most that the tenant may have. Null: no limit.', example: 10 }),
    used: z.int().openapi({ description: 'What it has. More than `limit` when the operator has lowered that.', example: 2 }),
  })
  .openapi('Quota');

/** A quota of a tenant; `limit` is null where there is none. */
export function presentQuota({ name, limit, used }: Quota): z.infer<typeof QuotaSchema> {
  return { name, limit: limit >= unlimited ? null : limit, used };
}
