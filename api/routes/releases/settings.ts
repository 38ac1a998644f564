import { createRoute } from '@hono/zod-openapi';
import type { Api } from '#api/http/api-env.ts';
import { answer, appParams, bearer, dataOf, guarded, jsonBody, refusalsOf, withBody } from '#api/openapi/schemas.ts';
import { presentSettings, SettingsSchema } from '#api/resources/settings.ts';
import type { Settings } from '#shared/core/releases/settings.ts';

const tags = ['settings'];
const AppSettings = dataOf(SettingsSchema);

const readSettings = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/settings',
  operationId: 'readSettings',
  summary: 'Get the settings of an app',
  description: 'Null: not set, the default applies. A preview has the settings of its app where it has none of its own.',
  tags,
  security: bearer,
  request: { params: appParams },
  responses: { 200: answer(AppSettings, 'All settings.'), ...guarded, ...refusalsOf(404) },
});

const changeSettings = createRoute({
  method: 'patch',
  path: '/v1/apps/{id}/settings',
  operationId: 'changeSettings',
  summary: 'Change settings of an app',
  description:
    'Null resets a setting to its default. Others stay as they are. A change of the health check, of the boot time-out or of ' +
    '`client_variables` creates a release. `session_affinity` is changed at once, `directory` with the next build.',
  tags,
  security: bearer,
  request: {
    params: appParams,
    body: jsonBody(SettingsSchema.partial().openapi({ example: { health_path: '/healthz' } }), true),
  },
  responses: { 200: answer(AppSettings, 'All settings after the change.'), ...guarded, ...withBody, ...refusalsOf(404) },
});

/** Adds the routes of an app's settings. */
export function addSettingsRoutes(api: Api, settings: Settings): void {
  api.openapi(readSettings, async (c) => {
    return c.json({ data: presentSettings(await settings.readSettings(c.get('caller'), c.req.valid('param').id)) }, 200);
  });

  api.openapi(changeSettings, async (c) => {
    const { health_path, health_timeout_seconds, boot_timeout_seconds, session_affinity, directory, client_variables } =
      c.req.valid('json');
    const changes = {
      healthPath: health_path,
      healthTimeoutSeconds: health_timeout_seconds,
      bootTimeoutSeconds: boot_timeout_seconds,
      sessionAffinity: session_affinity,
      directory,
      clientVariables: client_variables,
    };
    const changed = await settings.changeSettings(c.get('caller'), c.req.valid('param').id, changes);
    return c.json({ data: presentSettings(changed) }, 200);
  });
}
