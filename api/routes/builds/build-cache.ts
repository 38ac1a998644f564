import { createRoute } from '@hono/zod-openapi';
import type { Api } from '#api/http/api-env.ts';
import { answer, appParams, bearer, dataOf, guarded, refusalsOf } from '#api/openapi/schemas.ts';
import { BuildCacheFlushSchema, BuildCacheSchema } from '#api/resources/build.ts';
import type { BuildCacheService } from '#shared/core/builds/builds.ts';

const tags = ['builds'];

const readCache = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/build_cache',
  operationId: 'readBuildCache',
  summary: 'Get the volume of the build cache',
  description: 'Name and namespace of the volume. It may not exist yet: the first build creates it.',
  tags,
  security: bearer,
  request: { params: appParams },
  responses: { 200: answer(dataOf(BuildCacheSchema), 'The volume.'), ...guarded, ...refusalsOf(404) },
});

const flushCache = createRoute({
  method: 'delete',
  path: '/v1/apps/{id}/build_cache/flush',
  operationId: 'flushBuildCache',
  summary: 'Delete the build cache',
  tags,
  security: bearer,
  request: { params: appParams },
  responses: {
    200: answer(dataOf(BuildCacheFlushSchema), 'Deleted, or there was no cache. The next build is Cold.'),
    ...guarded,
    ...refusalsOf(404),
  },
});

/** Adds the routes that show and flush an app's build cache. */
export function addBuildCacheRoutes(api: Api, buildCache: BuildCacheService): void {
  api.openapi(readCache, async (c) => {
    const { appId, pvcName, namespace } = await buildCache.readCache(c.get('caller'), c.req.valid('param').id);
    return c.json({ data: { app_id: appId, pvc_name: pvcName, namespace } }, 200);
  });

  api.openapi(flushCache, async (c) => {
    const { appId, flushed, message } = await buildCache.flushCache(c.get('caller'), c.req.valid('param').id);
    return c.json({ data: { app_id: appId, flushed, message } }, 200);
  });
}
