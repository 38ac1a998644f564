import { createRoute } from '@hono/zod-openapi';
import type { Api } from '#api/http/api-env.ts';
import { answer, appParams, bearer, dataOf, guarded, pageOf, presentWhole, refusalsOf } from '#api/openapi/schemas.ts';
import { GitSourceSchema, presentGitSource, presentReceivedDelivery, ReceivedDeliverySchema } from '#api/resources/git-source.ts';
import type { GitSources } from '#shared/core/repositories/git-sources.ts';
import type { Webhooks } from '#shared/core/webhooks/webhooks.ts';

const readGitSource = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/git',
  operationId: 'readGitSource',
  summary: 'Get the git source, its webhook and its deploy key',
  tags: ['apps'],
  security: bearer,
  request: { params: appParams },
  responses: { 200: answer(dataOf(GitSourceSchema), 'The git source.'), ...guarded, ...refusalsOf(404) },
});

const listDeliveries = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/git/deliveries',
  operationId: 'listSourceDeliveries',
  summary: 'List the last deliveries of the git host about an app',
  description: 'Newest first, at most 20. Only deliveries with a right signature are listed.',
  tags: ['apps'],
  security: bearer,
  request: { params: appParams },
  responses: {
    200: answer(pageOf(ReceivedDeliverySchema), 'The deliveries, and what was answered.'),
    ...guarded,
    ...refusalsOf(404),
  },
});

/** Adds the routes that show an app's git source and its webhook deliveries. */
export function addGitSourceRoutes(api: Api, sources: GitSources, webhooks: Pick<Webhooks, 'listDeliveries'>): void {
  api.openapi(listDeliveries, async (c) => {
    const deliveries = await webhooks.listDeliveries(c.get('caller'), c.req.valid('param').id);
    return c.json(presentWhole(deliveries, presentReceivedDelivery), 200);
  });

  api.openapi(readGitSource, async (c) => {
    const source = await sources.readGitSource(c.get('caller'), c.req.valid('param').id);
    return c.json({ data: presentGitSource(source) }, 200, { 'cache-control': 'no-store' });
  });
}
