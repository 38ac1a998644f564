import { createRoute, z } from '@hono/zod-openapi';
import type { Api, ApiContext } from '#api/http/api-env.ts';
import { answer, dataOf, jsonBody, refusalsOf } from '#api/openapi/schemas.ts';
import type { PipelineAccess } from '#shared/core/builds/builds.ts';
import { AppError } from '#shared/errors.ts';

const tags = ['internal'];
const params = z.object({ bid: z.string().openapi({ description: 'Id of the build.' }) });

const fetchSource = createRoute({
  method: 'get',
  path: '/v1/internal/builds/{bid}/source',
  operationId: 'fetchBuildSource',
  summary: "Get a build's source",
  description:
    "For the build's own pipeline, with the token that the platform gave it: `Authorization: Bearer <token>`. The token can be " +
    'used once.',
  tags,
  security: [],
  request: { params },
  responses: {
    200: {
      description: 'The tree to build.',
      content: { 'application/x-tar': { schema: { type: 'string' as const, format: 'binary' } } },
    },
    ...refusalsOf(401, 422, 429, 500, 503),
  },
});

const CompletionSchema = z
  .object({
    status: z.enum(['succeeded', 'failed']),
    image_url: z.string().max(1000).optional(),
    digest: z.string().max(200).optional(),
  })
  .openapi('BuildCompletion');

const reportCompletion = createRoute({
  method: 'post',
  path: '/v1/internal/builds/{bid}/complete',
  operationId: 'reportBuildCompletion',
  summary: 'Report that a build has ended',
  description:
    "For the build's own pipeline, with the token that the platform gave it: `Authorization: Bearer <token>`. The report is a " +
    'hint. The control plane asks the platform for the result.',
  tags,
  security: [],
  request: { params, body: jsonBody(CompletionSchema, true) },
  responses: {
    202: answer(dataOf(z.object({ build_id: z.string() })), 'The platform looks at the build.'),
    ...refusalsOf(400, 401, 413, 415, 422, 429, 500, 503),
  },
});

/** Routes for the pipelines of builds. Each request carries a token of the one build. */
export function addPipelineRoutes(api: Api, pipeline: PipelineAccess): void {
  api.openapi(fetchSource, async (c) => {
    const source = await pipeline.openSource(c.req.valid('param').bid, readToken(c));
    return c.body(source, 200, { 'content-type': 'application/x-tar' });
  });

  api.openapi(reportCompletion, async (c) => {
    const { bid } = c.req.valid('param');
    await pipeline.reportCompletion(bid, readToken(c));
    return c.json({ data: { build_id: bid } }, 202);
  });
}

/** @throws AppError `unauthorized` when there is none */
function readToken(c: ApiContext): string {
  const token = /^Bearer +([A-Za-z0-9_-]+)$/i.exec(c.req.header('authorization') ?? '')?.[1];
  if (token === undefined) throw new AppError('unauthorized', "Send the build's token: `Authorization: Bearer <token>`.");
  return token;
}
