import { createRoute, z } from '@hono/zod-openapi';
import type { Api } from '#api/http/api-env.ts';
import { answer, appParams, bearer, dataOf, guarded, jsonBody, refusalsOf, withBody } from '#api/openapi/schemas.ts';
import type { Config } from '#shared/core/releases/releases.ts';

const tags = ['config'];
const example = { GREETING: 'hello' };
/** Variables are secrets. */
const notCached = { 'cache-control': 'no-store' };
/** For readers of the document. Core checks names. */
const variableNames = { propertyNames: { type: 'string', pattern: '^[A-Za-z_][A-Za-z0-9_]*$' } };
const ConfigSchema = z.record(z.string(), z.string()).openapi('Config', { example });

const readConfig = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/config',
  operationId: 'readConfig',
  summary: 'Get the config variables of an app',
  tags,
  security: bearer,
  request: {
    params: appParams,
    query: z.object({
      addons: z.enum(['true', 'false']).default('false').openapi({ description: '`true`: also the variables that add-ons set.' }),
    }),
  },
  responses: { 200: answer(dataOf(ConfigSchema), 'All variables.'), ...guarded, ...refusalsOf(404, 422) },
});

const changeConfig = createRoute({
  method: 'patch',
  path: '/v1/apps/{id}/config',
  operationId: 'changeConfig',
  summary: 'Change config variables',
  description: 'A value sets a variable, null removes it. Other variables stay as they are. A change creates a release.',
  tags,
  security: bearer,
  request: {
    params: appParams,
    body: jsonBody(
      z.record(z.string(), z.string().nullable()).openapi({
        example: { GREETING: 'hello', DEBUG: null },
        ...variableNames,
      }),
      true,
    ),
  },
  responses: {
    200: answer(dataOf(ConfigSchema), 'All variables after the change.'),
    ...guarded,
    ...withBody,
    ...refusalsOf(404, 409),
  },
});

/** Adds the routes of an app's variables. */
export function addConfigRoutes(api: Api, config: Config): void {
  api.openapi(readConfig, async (c) => {
    const withAddons = c.req.valid('query').addons === 'true';
    return c.json({ data: await config.readConfig(c.get('caller'), c.req.valid('param').id, withAddons) }, 200, notCached);
  });

  api.openapi(changeConfig, async (c) => {
    return c.json(
      { data: await config.changeConfig(c.get('caller'), c.req.valid('param').id, c.req.valid('json')) },
      200,
      notCached,
    );
  });
}
