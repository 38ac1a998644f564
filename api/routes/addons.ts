import { createRoute, z } from '@hono/zod-openapi';
import type { Api } from '#api/http/api-env.ts';
import {
  addonParams,
  answer,
  appParams,
  bearer,
  dataOf,
  guarded,
  idempotencyHeader,
  jsonBody,
  lineOf,
  pageOf,
  refusalsOf,
  withBody,
} from '#api/openapi/schemas.ts';
import { AddonCredentialsSchema, AddonSchema, presentAddon } from '#api/resources/addon.ts';
import type { AppAddons } from '#shared/core/addons/addons.ts';
import { addonTypes } from '#shared/platform/addons.ts';

const tags = ['addons'];
const Addon = dataOf(AddonSchema);
/** Secrets: no cache may keep them. */
const unkept = { 'cache-control': 'no-store' };
const plan = lineOf(100).default('free').openapi({
  description: '`free`, `standard` or `pro`; an unknown one counts as `free`.',
  example: 'standard',
});

const listAddons = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/addons',
  operationId: 'listAddons',
  summary: 'Add-ons of an app',
  tags,
  security: bearer,
  request: { params: appParams },
  responses: { 200: answer(pageOf(AddonSchema), 'All of them, on one page.'), ...guarded, ...refusalsOf(404) },
});

const createAddon = createRoute({
  method: 'post',
  path: '/v1/apps/{id}/addons',
  operationId: 'createAddon',
  summary: 'Create an add-on, or bring the one there is to a plan',
  description: 'Again converges what has strayed. The app gets the address in `config_var`, by a release of its own.',
  tags,
  security: bearer,
  request: {
    params: appParams,
    headers: idempotencyHeader,
    body: jsonBody(z.object({ type: z.enum(addonTypes), plan }), true),
  },
  responses: {
    200: answer(Addon, 'There was one; it is brought to the plan.'),
    201: answer(Addon, 'Being created.'),
    ...guarded,
    ...withBody,
    ...refusalsOf(404, 409),
  },
});

const createDatabase = createRoute({
  method: 'post',
  path: '/v1/addons/database',
  operationId: 'createDatabase',
  summary: 'Give an app a PostgreSQL database',
  tags,
  security: bearer,
  request: {
    headers: idempotencyHeader,
    body: jsonBody(
      z.object({ app_id: lineOf(64).min(1).openapi({ description: 'Id or name of the app.', example: 'hello' }), plan }),
      true,
    ),
  },
  responses: {
    200: answer(Addon, 'There was one; it is brought to the plan.'),
    201: answer(Addon, 'Being created.'),
    ...guarded,
    ...withBody,
    ...refusalsOf(404, 409),
  },
});

const readCredentials = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/addons/{addon_type}/credentials',
  operationId: 'readAddonCredentials',
  summary: 'How the app gets into its add-on',
  tags,
  security: bearer,
  request: { params: addonParams },
  responses: { 200: answer(dataOf(AddonCredentialsSchema), 'Secret.'), ...guarded, ...refusalsOf(404, 409) },
});

const rotateAddon = createRoute({
  method: 'post',
  path: '/v1/apps/{id}/addons/{addon_type}/rotate',
  operationId: 'rotateAddon',
  summary: 'Give an add-on a new password',
  description:
    'A release brings it to the app. Connections that are open stay; new ones with the old password are refused from the moment the servers have the new one.',
  tags,
  security: bearer,
  request: { params: addonParams, headers: idempotencyHeader },
  responses: { 202: answer(Addon, 'Accepted.'), ...guarded, ...refusalsOf(404, 409, 422) },
});

const deleteAddon = createRoute({
  method: 'delete',
  path: '/v1/apps/{id}/addons/{addon_type}',
  operationId: 'deleteAddon',
  summary: 'Remove an add-on and its data',
  description: 'The app loses the variable by a release; after that the servers and the data go, for good.',
  tags,
  security: bearer,
  request: { params: addonParams },
  responses: { 200: answer(Addon, 'Being removed; as it was.'), ...guarded, ...refusalsOf(404) },
});

export function addAddonRoutes(api: Api, addons: AppAddons): void {
  api.openapi(listAddons, async (c) => {
    const found = await addons.listAddons(c.get('caller'), c.req.valid('param').id);
    return c.json({ data: found.map(presentAddon), next_cursor: null }, 200);
  });

  api.openapi(createAddon, async (c) => {
    const { addon, created } = await addons.createAddon(c.get('caller'), c.req.valid('param').id, c.req.valid('json'));
    return c.json({ data: presentAddon(addon) }, created ? 201 : 200);
  });

  api.openapi(createDatabase, async (c) => {
    const { app_id, plan: wanted } = c.req.valid('json');
    const { addon, created } = await addons.createAddon(c.get('caller'), app_id, { type: 'database', plan: wanted });
    return c.json({ data: presentAddon(addon) }, created ? 201 : 200);
  });

  api.openapi(readCredentials, async (c) => {
    const { id, addon_type: type } = c.req.valid('param');
    const { uri, host, port, password } = await addons.readCredentials(c.get('caller'), id, type);
    return c.json({ data: { uri, host, port, password } }, 200, unkept);
  });

  api.openapi(rotateAddon, async (c) => {
    const { id, addon_type: type } = c.req.valid('param');
    return c.json({ data: presentAddon(await addons.rotatePassword(c.get('caller'), id, type)) }, 202);
  });

  api.openapi(deleteAddon, async (c) => {
    const { id, addon_type: type } = c.req.valid('param');
    return c.json({ data: presentAddon(await addons.deleteAddon(c.get('caller'), id, type)) }, 200);
  });
}
