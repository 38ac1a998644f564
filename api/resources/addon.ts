import { z } from '@hono/zod-openapi';
import { timestamp, uuid } from '#api/openapi/schemas.ts';
import type { Addon } from '#shared/core/addons/addons.ts';
import { addonTypes } from '#shared/platform/addons.ts';

export const AddonSchema = z
  .object({
    app_id: uuid,
    addon_type: z.enum(addonTypes),
    plan: z.enum(['free', 'standard', 'pro']),
    status: z.enum(['creating', 'Ready', 'Creating', 'Failed', 'deleting']).openapi({
      description:
        '`creating`: requested. After that it follows the servers of the add-on: `Ready` when all of them answer, `Creating` when none does, `Failed` when only some do. `deleting`: it was deleted, its servers are being removed.',
    }),
    config_var: z
      .string()
      .openapi({ description: 'The config variable that holds the URL of the add-on.', example: 'KVSTORE_URL' }),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .openapi('Addon');

export const AddonCredentialsSchema = z
  .object({
    uri: z.string().openapi({ example: 'redis://:c0ffee00c0ffee00c0ffee00c0ffee00@127.0.0.1:10818' }),
    host: z.string().openapi({ example: '127.0.0.1' }),
    port: z.int().openapi({ example: 10818 }),
    password: z.string().openapi({ example: 'c0ffee00c0ffee00c0ffee00c0ffee00' }),
  })
  .openapi('AddonCredentials');

/** An add-on without its credentials. */
export function presentAddon(addon: Addon): z.infer<typeof AddonSchema> {
  return {
    app_id: addon.appId,
    addon_type: addon.type,
    plan: addon.plan,
    status: addon.status,
    config_var: addon.configVar,
    created_at: addon.createdAt.toISOString(),
    updated_at: addon.updatedAt.toISOString(),
  };
}
