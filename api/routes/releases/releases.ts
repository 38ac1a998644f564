import { createRoute } from '@hono/zod-openapi';
import { type Api, newResourceId } from '#api/http/api-env.ts';
import {
  answer,
  appParams,
  bearer,
  dataOf,
  guarded,
  idempotencyHeader,
  pageOf,
  pageQuery,
  presentPage,
  refusalsOf,
  releaseParams,
  toPageQuery,
} from '#api/openapi/schemas.ts';
import { DeploySchema, presentDeploy, presentRelease, ReleaseSchema } from '#api/resources/release.ts';
import type { Releases } from '#shared/core/releases/releases.ts';
import type { ReleaseId } from '#shared/ids.ts';

const tags = ['releases'];

const listReleases = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/releases',
  operationId: 'listReleases',
  summary: 'List the releases of an app, newest first',
  tags,
  security: bearer,
  request: { params: appParams, query: pageQuery },
  responses: { 200: answer(pageOf(ReleaseSchema), 'A page of releases.'), ...guarded, ...refusalsOf(404, 422) },
});

const listDeploys = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/deploys',
  operationId: 'listDeploys',
  summary: 'List the deploys of an app, newest first',
  tags,
  security: bearer,
  request: { params: appParams, query: pageQuery },
  responses: { 200: answer(pageOf(DeploySchema), 'A page of deploys.'), ...guarded, ...refusalsOf(404, 422) },
});

const rollBack = createRoute({
  method: 'post',
  path: '/v1/apps/{id}/deploys/{rid}/rollback',
  operationId: 'rollBack',
  summary: 'Roll back to an earlier release',
  description: 'Creates a new release with the image, processes and variables of the earlier one, and deploys it.',
  tags,
  security: bearer,
  request: { params: releaseParams, headers: idempotencyHeader },
  responses: { 201: answer(dataOf(DeploySchema), 'The deploy of the new release.'), ...guarded, ...refusalsOf(404, 409, 422) },
});

/** Adds the routes of releases, deploys and rollback. */
export function addReleaseRoutes(api: Api, releases: Releases): void {
  api.openapi(listReleases, async (c) => {
    const page = await releases.listReleases(c.get('caller'), c.req.valid('param').id, toPageQuery(c.req.valid('query')));
    return c.json(presentPage(page, presentRelease), 200);
  });

  api.openapi(listDeploys, async (c) => {
    const page = await releases.listDeploys(c.get('caller'), c.req.valid('param').id, toPageQuery(c.req.valid('query')));
    return c.json(presentPage(page, presentDeploy), 200);
  });

  api.openapi(rollBack, async (c) => {
    const { id, rid } = c.req.valid('param');
    const { deploy } = await releases.rollBack(c.get('caller'), id, rid, newResourceId<ReleaseId>(c).id);
    return c.json({ data: presentDeploy(deploy) }, 201);
  });
}
