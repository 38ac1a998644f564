import { z } from '@hono/zod-openapi';
import { timestamp, uuid } from '#api/openapi/schemas.ts';
import type { Build, BuildLogLine } from '#shared/core/builds/builds.ts';

export const BuildSchema = z
  .object({
    id: uuid,
    app_id: uuid,
    status: z.enum(['queued', 'running', 'succeeded', 'failed', 'canceled']),
    cache_state: z.enum(['Cold', 'Warm']),
    pipeline: z.string().openapi({ example: 'local' }),
    commit: z.string().nullable().openapi({ example: '5478677c3a5a1f2c8f1c1fbb6b9d7c7a6e1d2f30' }),
    commit_title: z
      .string()
      .nullable()
      .openapi({ description: 'First line of the message of the commit. Null: not read yet.', example: 'Greet in German' }),
    commit_author: z.string().nullable().openapi({ example: 'Ada <ada@example.com>' }),
    branch: z.string().nullable().openapi({ example: 'main' }),
    source_url: z
      .string()
      .nullable()
      .openapi({ description: 'URL of the archive that is built, without its query. Null for a build of a commit.' }),
    source_sha256: z.string().nullable().openapi({ description: 'SHA-256 of the archive. Null until it is known.' }),
    source_image: z
      .string()
      .nullable()
      .openapi({ description: 'Container image that is released. Null for other builds.', example: 'ghcr.io/owner/name:1.2' }),
    image_url: z.string().nullable(),
    error: z.string().nullable().openapi({ description: 'Why the build failed, in one line.' }),
    release_id: uuid.nullable(),
    created_at: timestamp,
    started_at: timestamp.nullable(),
    finished_at: timestamp.nullable(),
  })
  .openapi('Build');

export const BuildLogLineSchema = z
  .object({ seq: z.int().openapi({ description: 'Number of the line, from 1.', example: 1 }), ts: timestamp, line: z.string() })
  .openapi('BuildLogLine');

export const BuildCacheSchema = z
  .object({
    app_id: uuid,
    pvc_name: z.string().openapi({ example: 'build-cache-4f6f1b7e-5d0c-4a43-9c8e-0d3a1f5b2c77' }),
    namespace: z.string().openapi({ example: 'paas-build' }),
  })
  .openapi('BuildCache');

export const BuildCacheFlushSchema = z
  .object({
    app_id: uuid,
    flushed: z.boolean().openapi({ description: 'False: there was no cache.' }),
    message: z.string(),
  })
  .openapi('BuildCacheFlush');

/** A build without its log. */
export function presentBuild(build: Build): z.infer<typeof BuildSchema> {
  return {
    id: build.id,
    app_id: build.appId,
    status: build.status,
    cache_state: build.cacheState,
    pipeline: build.pipeline,
    commit: build.commit,
    commit_title: build.commitTitle,
    commit_author: build.commitAuthor,
    branch: build.branch,
    source_url: build.sourceUrl,
    source_sha256: build.sourceSha256,
    source_image: build.sourceImage,
    image_url: build.imageUrl,
    error: build.error,
    release_id: build.releaseId,
    created_at: build.createdAt.toISOString(),
    started_at: build.startedAt?.toISOString() ?? null,
    finished_at: build.finishedAt?.toISOString() ?? null,
  };
}

/** A line of a build's log. */
export function presentBuildLogLine(entry: BuildLogLine): z.infer<typeof BuildLogLineSchema> {
  return { seq: entry.seq, ts: entry.ts.toISOString(), line: entry.line };
}
