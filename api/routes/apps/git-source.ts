import { createRoute } from '@hono/zod-openapi';
import type { Api } from '#api/http/api-env.ts';
import { answer, appParams, bearer, dataOf, guarded, refusalsOf } from '#api/openapi/schemas.ts';
import { GitSourceSchema, presentGitSource } from '#api/resources/git-source.ts';
import type { GitSources } from '#shared/core/repositories/git-sources.ts';

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

export function addGitSourceRoutes(api: Api, sources: GitSources): void {
  api.openapi(readGitSource, async (c) => {
    const source = await sources.readGitSource(c.get('caller'), c.req.valid('param').id);
    return c.json({ data: presentGitSource(source) }, 200, { 'cache-control': 'no-store' });
  });
}
