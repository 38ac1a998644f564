import { z } from '@hono/zod-openapi';
import { timestamp, uuid } from '#api/openapi/schemas.ts';
import type { App } from '#shared/core/apps/apps.ts';

export const AppSchema = z
  .object({
    id: uuid,
    name: z.string().openapi({ example: 'hello' }),
    tenant_id: z.string().openapi({ example: 'k3v9x2ab' }),
    git_url: z.string().nullable(),
    push_url: z.string().openapi({ example: 'ssh://git@localhost:2222/hello.git' }),
    branch: z.string().openapi({ example: 'main' }),
    subdomain: z.string().openapi({ example: 'https://hello.apps.localhost:8443' }),
    web_url: z.string().openapi({ description: 'URL of the app.', example: 'http://hello.apps.localhost:8080' }),
    status: z.enum(['active', 'deleted']),
    current_release: z.object({ id: uuid, version: z.int() }).nullable(),
    preview: z
      .object({ parent_app_id: uuid, branch: z.string() })
      .nullable()
      .openapi({ description: 'The app and branch that a preview belongs to. Null: not a preview.' }),
    created_at: timestamp,
    updated_at: timestamp,
    deleted_at: timestamp.nullable(),
    restorable_until: timestamp.nullable(),
  })
  .openapi('App');

/** An app with its addresses and its current release. */
export function presentApp(app: App): z.infer<typeof AppSchema> {
  return {
    id: app.id,
    name: app.name,
    tenant_id: app.tenantId,
    git_url: app.gitUrl,
    push_url: app.pushUrl,
    branch: app.branch,
    subdomain: app.subdomain,
    web_url: app.webUrl,
    status: app.status,
    current_release: app.currentRelease === null ? null : { id: app.currentRelease.id, version: app.currentRelease.version },
    preview: app.preview === null ? null : { parent_app_id: app.preview.parentAppId, branch: app.preview.branch },
    created_at: app.createdAt.toISOString(),
    updated_at: app.updatedAt.toISOString(),
    deleted_at: app.deletedAt?.toISOString() ?? null,
    restorable_until: app.restorableUntil?.toISOString() ?? null,
  };
}
