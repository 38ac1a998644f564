import { createRoute, z } from '@hono/zod-openapi';
import type { Api } from '#api/http/api-env.ts';
import {
  answer,
  appParams,
  bearer,
  dataOf,
  domainParams,
  guarded,
  jsonBody,
  lineOf,
  refusalsOf,
  withBody,
} from '#api/openapi/schemas.ts';
import { DomainSchema, presentDomain } from '#api/resources/domain.ts';
import type { Domains } from '#shared/core/apps/apps.ts';

const tags = ['domains'];

const listDomains = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/domains',
  operationId: 'listDomains',
  summary: "An app's own domains",
  tags,
  security: bearer,
  request: { params: appParams },
  responses: {
    200: answer(dataOf(z.array(DomainSchema)), 'All of them, in the order in which they were added.'),
    ...guarded,
    ...refusalsOf(404),
  },
});

const addDomain = createRoute({
  method: 'post',
  path: '/v1/apps/{id}/domains',
  operationId: 'addDomain',
  summary: 'Let a domain lead to an app',
  description:
    'A host in the public DNS stays `pending` until the TXT record of `proof` is there; point the host itself at the platform as well. ' +
    'Calling it again looks for the record at once. Names that the public DNS never has, and any on a machine of one’s own, are active at once.',
  tags,
  security: bearer,
  request: {
    params: appParams,
    body: jsonBody(z.object({ host: lineOf(253).min(1).openapi({ example: 'www.example.com' }) }), true),
  },
  responses: {
    200: answer(dataOf(DomainSchema), 'It was there already; the proof was looked for again.'),
    201: answer(dataOf(DomainSchema), 'Added.'),
    ...guarded,
    ...withBody,
    ...refusalsOf(404, 409),
  },
});

const removeDomain = createRoute({
  method: 'delete',
  path: '/v1/apps/{id}/domains/{host}',
  operationId: 'removeDomain',
  summary: 'Take a domain away from an app',
  tags,
  security: bearer,
  request: { params: domainParams },
  responses: { 204: { description: 'Removed; it leads nowhere within moments.' }, ...guarded, ...refusalsOf(404) },
});

export function addDomainRoutes(api: Api, domains: Domains): void {
  api.openapi(listDomains, async (c) => {
    const listed = await domains.listDomains(c.get('caller'), c.req.valid('param').id);
    return c.json({ data: listed.map(presentDomain) }, 200);
  });

  api.openapi(addDomain, async (c) => {
    const { domain, added } = await domains.addDomain(c.get('caller'), c.req.valid('param').id, c.req.valid('json').host);
    return c.json({ data: presentDomain(domain) }, added ? 201 : 200);
  });

  api.openapi(removeDomain, async (c) => {
    const { id, host } = c.req.valid('param');
    await domains.removeDomain(c.get('caller'), id, host);
    return c.body(null, 204);
  });
}
