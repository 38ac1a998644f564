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
  pageOf,
  presentWhole,
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
  summary: 'List the custom domains of an app',
  tags,
  security: bearer,
  request: { params: appParams },
  responses: {
    200: answer(pageOf(DomainSchema), 'All domains, oldest first.'),
    ...guarded,
    ...refusalsOf(404),
  },
});

const addDomain = createRoute({
  method: 'post',
  path: '/v1/apps/{id}/domains',
  operationId: 'addDomain',
  summary: 'Add a domain to an app',
  description:
    'A host in the public DNS is `pending` until the TXT record in `proof` is published. Point the host itself at the platform, too. ' +
    'Repeating the request checks the record at once. Hosts that the public DNS cannot have, such as `hello.test`, are active at once. ' +
    'So are all hosts on a platform whose own apps domain is not public.',
  tags,
  security: bearer,
  request: {
    params: appParams,
    body: jsonBody(z.object({ host: lineOf(253).min(1).openapi({ example: 'www.example.com' }) }), true),
  },
  responses: {
    200: answer(dataOf(DomainSchema), 'The domain exists. Its proof was checked again.'),
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
  summary: 'Remove a domain from an app',
  tags,
  security: bearer,
  request: { params: domainParams },
  responses: { 204: { description: 'Removed. Requests stop within seconds.' }, ...guarded, ...refusalsOf(404) },
});

/** Adds the routes of custom domains. */
export function addDomainRoutes(api: Api, domains: Domains): void {
  api.openapi(listDomains, async (c) => {
    const listed = await domains.listDomains(c.get('caller'), c.req.valid('param').id);
    return c.json(presentWhole(listed, presentDomain), 200);
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
