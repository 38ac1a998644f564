import { createRoute } from '@hono/zod-openapi';
import type { Api } from '#api/http/api-env.ts';
import { answer, bearer, guarded, pageOf, presentWhole } from '#api/openapi/schemas.ts';
import { presentQuota, QuotaSchema } from '#api/resources/quota.ts';
import type { TenantQuotas } from '#shared/core/quotas/quotas.ts';

const listQuotas = createRoute({
  method: 'get',
  path: '/v1/quotas',
  operationId: 'listQuotas',
  summary: 'List the quotas of the tenant',
  description:
    'What the tenant may have at most, and what it has. A request that would exceed a quota is answered with `forbidden`. The operator of the platform sets the quotas.',
  tags: ['team'],
  security: bearer,
  responses: { 200: answer(pageOf(QuotaSchema), 'All quotas.'), ...guarded },
});

/** Adds the route that lists a tenant's quotas. */
export function addQuotaRoutes(api: Api, quotas: TenantQuotas): void {
  api.openapi(listQuotas, async (c) => {
    return c.json(presentWhole(await quotas.listQuotas(c.get('caller')), presentQuota), 200);
  });
}
