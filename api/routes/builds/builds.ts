import { createRoute, z } from '@hono/zod-openapi';
import { type Api, newResourceId } from '#api/http/api-env.ts';
import { type StreamEvent, streamEvents, wantsEvents } from '#api/http/event-stream.ts';
import type { StreamLimits } from '#api/http/stream-limits.ts';
import {
  answer,
  appParams,
  bearer,
  buildParams,
  dataOf,
  guarded,
  idempotencyHeader,
  jsonBody,
  lineOf,
  pageOf,
  pageQuery,
  presentPage,
  refusalsOf,
  toPageQuery,
  withBody,
} from '#api/openapi/schemas.ts';
import { BuildLogLineSchema, BuildSchema, presentBuild, presentBuildLogLine } from '#api/resources/build.ts';
import type { BuildLogLine, Builds } from '#shared/core/builds/builds.ts';
import type { BuildId } from '#shared/ids.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';

const tags = ['builds'];

const startBuild = createRoute({
  method: 'post',
  path: '/v1/apps/{id}/builds',
  operationId: 'startBuild',
  summary: 'Start a build',
  description:
    'Builds a branch or commit of the app, the tar.gz at `source_url`, or the container image `image`. The archive is fetched when the build runs. If all of its ' +
    'files are in one folder, that folder is left out.',
  tags,
  security: bearer,
  request: {
    params: appParams,
    headers: idempotencyHeader,
    body: jsonBody(
      z.object({
        branch: lineOf(255)
          .min(1)
          .optional()
          .openapi({ description: 'Default: the branch of the app that is deployed.', example: 'main' }),
        commit: z
          .string()
          .regex(/^[0-9a-f]{40}$/, 'must be 40 hex digits, as `git rev-parse HEAD` prints')
          .optional(),
        source_url: lineOf(8192).min(1).optional().openapi({
          description:
            'HTTPS URL of a tar.gz, instead of a branch or commit. Its query is never shown again: it may be a signature.',
          example: 'https://files.example.com/hello-1.2.tar.gz?signature=3f9a2c1b',
        }),
        source_sha256: z
          .string()
          .regex(/^[0-9a-fA-F]{64}$/, 'must be 64 hex digits, as `sha256sum source.tar.gz` prints')
          .optional()
          .openapi({ description: 'SHA-256 that the archive must have. Otherwise the build fails.' }),
        image: lineOf(512)
          .min(1)
          .optional()
          .openapi({
            description:
              'Container image to release, instead of a branch or commit. It is pulled when the build runs. Credentials of its registry: ' +
              'the config variable `DOCKER_AUTH_CONFIG`, with the content of a `~/.docker/config.json`.',
            example: 'ghcr.io/owner/name:1.2',
          }),
      }),
      false,
    ),
  },
  responses: { 201: answer(dataOf(BuildSchema), 'Started.'), ...guarded, ...withBody, ...refusalsOf(404, 409) },
});

const listBuilds = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/builds',
  operationId: 'listBuilds',
  summary: 'List the builds of an app, newest first',
  tags,
  security: bearer,
  request: { params: appParams, query: pageQuery },
  responses: { 200: answer(pageOf(BuildSchema), 'A page of builds.'), ...guarded, ...refusalsOf(404, 422) },
});

const readBuild = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/builds/{bid}',
  operationId: 'readBuild',
  summary: 'Get a build',
  tags,
  security: bearer,
  request: { params: buildParams },
  responses: { 200: answer(dataOf(BuildSchema), 'The build.'), ...guarded, ...refusalsOf(404) },
});

const readBuildLog = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/builds/{bid}/logs',
  operationId: 'readBuildLog',
  summary: 'Read or follow the log of a build',
  description:
    'With `Accept: text/event-stream` each line is an event with its `seq` as the id, and new lines follow. `Last-Event-ID` or `cursor` ' +
    'resumes after a line. When the build and its deploy are over, an event `end` has the build as data, and the stream ends.',
  tags,
  security: bearer,
  request: {
    params: buildParams,
    query: z.object({
      limit: z.coerce.number().int().min(1).max(10_000).default(1000),
      cursor: z
        .string()
        .regex(/^\d{1,9}$/)
        .optional()
        .openapi({ description: 'The `seq` of the last line that was read.', example: '120' }),
    }),
  },
  responses: {
    200: {
      description: 'Lines of the log, oldest first.',
      content: {
        'application/json': { schema: pageOf(BuildLogLineSchema) },
        'text/event-stream': { schema: z.string() },
      },
    },
    ...guarded,
    ...refusalsOf(404, 422),
  },
});

const cancelBuild = createRoute({
  method: 'post',
  path: '/v1/apps/{id}/builds/{bid}/cancel',
  operationId: 'cancelBuild',
  summary: 'Cancel a build',
  tags,
  security: bearer,
  request: { params: buildParams },
  responses: { 200: answer(dataOf(BuildSchema), 'Canceled, or being canceled.'), ...guarded, ...refusalsOf(404, 409) },
});

/** Adds the routes of builds and of their logs. @param streams bounds the logs that are followed */
export function addBuildRoutes(api: Api, builds: Builds, streams: StreamLimits): void {
  api.openapi(startBuild, async (c) => {
    const { branch, commit, source_url, source_sha256, image } = c.req.valid('json');
    const request = {
      ...newResourceId<BuildId>(c),
      ...omitUndefined({ branch, commit, sourceUrl: source_url, sourceSha256: source_sha256, image }),
    };
    return c.json({ data: presentBuild(await builds.startBuild(c.get('caller'), c.req.valid('param').id, request)) }, 201);
  });

  api.openapi(listBuilds, async (c) => {
    const page = await builds.listBuilds(c.get('caller'), c.req.valid('param').id, toPageQuery(c.req.valid('query')));
    return c.json(presentPage(page, presentBuild), 200);
  });

  api.openapi(readBuild, async (c) => {
    const { id, bid } = c.req.valid('param');
    return c.json({ data: presentBuild(await builds.readBuild(c.get('caller'), id, bid)) }, 200);
  });

  api.openapi(readBuildLog, async (c) => {
    const { id, bid } = c.req.valid('param');
    const { limit, cursor } = c.req.valid('query');
    const caller = c.get('caller');
    if (wantsEvents(c)) {
      const afterSeq = Number(lastSeq(c.req.header('last-event-id')) ?? cursor ?? 0);
      const verifyAgain = c.get('verifyAgain');
      // Follow one build, also when `latest` becomes another one in the meantime.
      const build = await builds.readBuild(caller, id, bid);
      return streamEvents(c, {
        streams,
        async open(signal) {
          const lines = await builds.followBuildLog(caller, id, build.id, { afterSeq }, signal);
          return toEvents(lines, async () => presentBuild(await builds.readBuild(caller, id, build.id)));
        },
        check: async () => builds.readBuild(await verifyAgain(), id, build.id),
      });
    }
    const lines = await builds.readBuildLog(caller, id, bid, { afterSeq: Number(cursor ?? 0), limit });
    const last = lines.at(-1);
    const next = lines.length === limit && last !== undefined ? String(last.seq) : null;
    return c.json({ data: lines.map(presentBuildLogLine), next_cursor: next }, 200);
  });

  api.openapi(cancelBuild, async (c) => {
    const { id, bid } = c.req.valid('param');
    return c.json({ data: presentBuild(await builds.cancelBuild(c.get('caller'), id, bid)) }, 200);
  });
}

function lastSeq(header: string | undefined): string | undefined {
  return header !== undefined && /^\d{1,9}$/.test(header) ? header : undefined;
}

async function* toEvents(lines: AsyncIterable<BuildLogLine>, readEnd: () => Promise<unknown>): AsyncIterable<StreamEvent> {
  for await (const line of lines) yield { id: String(line.seq), data: presentBuildLogLine(line) };
  yield { event: 'end', data: await readEnd() };
}
