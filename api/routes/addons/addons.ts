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
  presentWhole,
  refusalsOf,
  withBody,
} from '#api/openapi/schemas.ts';
import { AddonCredentialsSchema, AddonSchema, presentAddon } from '#api/resources/addon.ts';
import type { AppAddons } from '#shared/core/addons/addons.ts';
import { addonTypes } from '#shared/platform/addons.ts';

const tags = ['addons'];
const Addon = dataOf(AddonSchema);
/** For answers with secrets. */
const notCached = { 'cache-control': 'no-store' };
const plan = lineOf(100).default('free').openapi({
  description: '`free`, `standard` or `pro`. Any other value counts as `free`.',
  example: 'standard',
});

const listAddons = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/addons',
  operationId: 'listAddons',
  summary: 'List the add-ons of an app',
  tags,
  security: bearer,
  request: { params: appParams },
  responses: { 200: answer(pageOf(AddonSchema), 'All add-ons, on one page.'), ...guarded, ...refusalsOf(404) },
});

const createAddon = createRoute({
  method: 'post',
  path: '/v1/apps/{id}/addons',
  operationId: 'createAddon',
  summary: 'Create an add-on or change its plan',
  description:
    'A release gives the app the URL of the add-on in the variable `config_var`. Repeating the request repairs the add-on.',
  tags,
  security: bearer,
  request: {
    params: appParams,
    headers: idempotencyHeader,
    body: jsonBody(z.object({ type: z.enum(addonTypes), plan }), true),
  },
  responses: {
    200: answer(Addon, 'The add-on exists. Its plan is changed.'),
    201: answer(Addon, 'The add-on is being created.'),
    ...guarded,
    ...withBody,
    ...refusalsOf(404, 409),
  },
});

const createDatabase = createRoute({
  method: 'post',
  path: '/v1/addons/database',
  operationId: 'createDatabase',
  summary: 'Create a PostgreSQL database for an app',
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
    200: answer(Addon, 'The add-on exists. Its plan is changed.'),
    201: answer(Addon, 'The add-on is being created.'),
    ...guarded,
    ...withBody,
    ...refusalsOf(404, 409),
  },
});

const readCredentials = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/addons/{addon_type}/credentials',
  operationId: 'readAddonCredentials',
  summary: 'Get the credentials of an add-on',
  tags,
  security: bearer,
  request: { params: addonParams },
  responses: {
    200: answer(dataOf(AddonCredentialsSchema), 'The credentials. Keep them secret.'),
    ...guarded,
    ...refusalsOf(404, 409),
  },
});

const rotateAddon = createRoute({
  method: 'post',
  path: '/v1/apps/{id}/addons/{addon_type}/rotate',
  operationId: 'rotateAddon',
  summary: 'Rotate the password of an add-on',
  description:
    'A release gives the new password to the app. Open connections stay open. New connections with the old password are refused as soon as the servers have the new one.',
  tags,
  security: bearer,
  request: { params: addonParams, headers: idempotencyHeader },
  responses: { 202: answer(Addon, 'Accepted.'), ...guarded, ...refusalsOf(404, 409, 422) },
});

const deleteAddon = createRoute({
  method: 'delete',
  path: '/v1/apps/{id}/addons/{addon_type}',
  operationId: 'deleteAddon',
  summary: 'Delete an add-on and its data',
  description: 'A release removes the variable from the app. Then the servers and the data are deleted. This cannot be undone.',
  tags,
  security: bearer,
  request: { params: addonParams },
  responses: { 200: answer(Addon, 'The add-on is being deleted.'), ...guarded, ...refusalsOf(404) },
});

/** Adds the routes of add-ons. */
export function addAddonRoutes(api: Api, addons: AppAddons): void {
  api.openapi(listAddons, async (c) => {
    const found = await addons.listAddons(c.get('caller'), c.req.valid('param').id);
    return c.json(presentWhole(found, presentAddon), 200);
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
    return c.json({ data: { uri, host, port, password } }, 200, notCached);
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
