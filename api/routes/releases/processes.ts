import { createRoute, z } from '@hono/zod-openapi';
import type { Api } from '#api/http/api-env.ts';
import {
  answer,
  appParams,
  bearer,
  dataOf,
  guarded,
  jsonBody,
  pageOf,
  presentWhole,
  processParams,
  refusalsOf,
  withBody,
} from '#api/openapi/schemas.ts';
import { ProcessSchema, presentProcess, RestartSchema } from '#api/resources/process.ts';
import type { Processes } from '#shared/core/releases/releases.ts';
import { limits } from '#shared/limits.ts';

const tags = ['processes'];

const listProcesses = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/processes',
  operationId: 'listProcesses',
  summary: 'List process types and their instances',
  tags,
  security: bearer,
  request: { params: appParams },
  responses: {
    200: answer(pageOf(ProcessSchema), 'All process types of the current release.'),
    ...guarded,
    ...refusalsOf(404),
  },
});

const scaleProcess = createRoute({
  method: 'patch',
  path: '/v1/apps/{id}/processes/{type}',
  operationId: 'scaleProcess',
  summary: 'Scale a process type',
  tags,
  security: bearer,
  request: {
    params: processParams,
    body: jsonBody(z.object({ quantity: z.int().min(0).max(limits.app.instancesPerType).openapi({ example: 2 }) }), true),
  },
  responses: { 200: answer(dataOf(ProcessSchema), 'Scaled.'), ...guarded, ...withBody, ...refusalsOf(404, 409) },
});

const restart = createRoute({
  method: 'post',
  path: '/v1/apps/{id}/restart',
  operationId: 'restartApp',
  summary: 'Restart an app',
  tags,
  security: bearer,
  request: { params: appParams },
  responses: {
    202: answer(dataOf(RestartSchema), 'Accepted. Instances are replaced one by one.'),
    ...guarded,
    ...refusalsOf(404, 409),
  },
});

/** Adds the routes of process types: list, scale, restart. */
export function addProcessRoutes(api: Api, processes: Processes): void {
  api.openapi(listProcesses, async (c) => {
    const types = await processes.listProcesses(c.get('caller'), c.req.valid('param').id);
    return c.json(presentWhole(types, presentProcess), 200);
  });

  api.openapi(scaleProcess, async (c) => {
    const { id, type } = c.req.valid('param');
    const scaled = await processes.scaleProcess(c.get('caller'), id, type, c.req.valid('json').quantity);
    return c.json({ data: presentProcess(scaled) }, 200);
  });

  api.openapi(restart, async (c) => {
    const { restartedAt, processes: types } = await processes.restart(c.get('caller'), c.req.valid('param').id);
    return c.json({ data: { restarted_at: restartedAt.toISOString(), processes: [...types] } }, 202);
  });
}
