import { z } from '@hono/zod-openapi';
import { timestamp, uuid } from '#api/openapi/schemas.ts';
import type { Deploy, Release } from '#shared/core/releases/releases.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';

export const ReleaseSchema = z
  .object({
    id: uuid,
    version: z.int().openapi({ example: 7 }),
    status: z.enum(['pending', 'succeeded', 'failed']),
    kind: z.enum(['build', 'config', 'addon', 'rollback']),
    commit: z.string().nullable(),
    commit_title: z
      .string()
      .nullable()
      .openapi({ description: 'First line of the message of the commit. Null: not read yet.', example: 'Greet in German' }),
    commit_author: z.string().nullable().openapi({ example: 'Ada <ada@example.com>' }),
    image_url: z.string(),
    description: z.string().openapi({ example: 'Deploy 5478677' }),
    current: z.boolean(),
    created_at: timestamp,
    created_by: z.string().openapi({ example: 'ada@example.com' }),
  })
  .openapi('Release');

export const DeploySchema = z
  .object({
    id: uuid,
    release_id: uuid,
    version: z.int().openapi({ description: 'Version of the release.', example: 7 }),
    status: z.enum(['pending', 'rolling', 'live', 'failed', 'aborted', 'superseded']),
    weight: z.int().openapi({ description: 'Percentage of the traffic that the release gets.', example: 25 }),
    steps: z.array(z.object({ weight: z.int(), at: timestamp, detail: z.string().optional() })),
    error: z.string().nullable(),
    created_at: timestamp,
    finished_at: timestamp.nullable(),
  })
  .openapi('Deploy');

/** A release without its variables. */
export function presentRelease(release: Release): z.infer<typeof ReleaseSchema> {
  return {
    id: release.id,
    version: release.version,
    status: release.status,
    kind: release.kind,
    commit: release.commit,
    commit_title: release.commitTitle,
    commit_author: release.commitAuthor,
    image_url: release.imageUrl,
    description: release.description,
    current: release.current,
    created_at: release.createdAt.toISOString(),
    created_by: release.createdBy,
  };
}

/** A deploy with the steps of its rollout. */
export function presentDeploy(deploy: Deploy): z.infer<typeof DeploySchema> {
  return {
    id: deploy.id,
    release_id: deploy.releaseId,
    version: deploy.version,
    status: deploy.status,
    weight: deploy.weight,
    steps: deploy.steps.map(({ weight, at, detail }) => omitUndefined({ weight, at, detail })),
    error: deploy.error,
    created_at: deploy.createdAt.toISOString(),
    finished_at: deploy.finishedAt?.toISOString() ?? null,
  };
}
