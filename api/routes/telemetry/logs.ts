import { createRoute, z } from '@hono/zod-openapi';
import type { Api } from '#api/http/api-env.ts';
import { type StreamEvent, streamEvents, wantsEvents } from '#api/http/event-stream.ts';
import type { StreamLimits } from '#api/http/stream-limits.ts';
import { answer, appParams, bearer, guarded, pageOf, presentWhole, refusalsOf } from '#api/openapi/schemas.ts';
import { LogEntrySchema, presentLogEntry } from '#api/resources/process.ts';
import type { Logs } from '#shared/core/telemetry/telemetry.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';
import type { AppLogEntry, AppLogQuery } from '#shared/platform/app-logs.ts';

const mostLines = 10_000;

const readLogs = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/logs',
  operationId: 'readLogs',
  summary: 'Read or follow the logs of an app',
  description:
    'Logs are kept over deploys, crashes and restarts. With `Accept: text/event-stream` new entries follow. `Last-Event-ID` resumes ' +
    'without a gap. A stream ends after an hour: connect again with a new token. A user may have 20 open streams of all kinds.',
  tags: ['logs'],
  security: bearer,
  request: {
    params: appParams,
    query: z.object({
      lines: z.coerce
        .number()
        .int()
        .min(1)
        .max(mostLines)
        .default(100)
        .openapi({ description: 'Number of entries, from the newest.' }),
      since: z.iso.datetime({ offset: true }).optional().openapi({ format: 'date-time' }),
      process: z
        .string()
        .regex(/^[A-Za-z0-9_-]{1,64}(\.\d{1,4})?$/)
        .optional()
        .openapi({ description: 'Process type or name of an instance.', example: 'web.1' }),
      release: z
        .string()
        .regex(/^v?\d{1,9}$/)
        .optional()
        .openapi({ description: 'Version of the release.', example: 'v7' }),
    }),
  },
  responses: {
    200: {
      description: 'Log entries, oldest first.',
      content: {
        ...answer(pageOf(LogEntrySchema), '').content,
        'text/event-stream': { schema: z.string() },
      },
    },
    ...guarded,
    ...refusalsOf(404, 422),
  },
});

/** Adds the route of an app's logs. @param streams bounds the logs that are followed */
export function addLogRoutes(api: Api, logs: Logs, streams: StreamLimits): void {
  api.openapi(readLogs, async (c) => {
    const { id } = c.req.valid('param');
    const { lines, since, process, release } = c.req.valid('query');
    const query: AppLogQuery = omitUndefined({
      lines,
      since: since === undefined ? undefined : new Date(since),
      process,
      releaseVersion: release === undefined ? undefined : Number(release.replace('v', '')),
    });
    const caller = c.get('caller');
    if (!wantsEvents(c)) {
      const entries = await logs.readLogs(caller, id, query);
      return c.json(presentWhole(entries, presentLogEntry), 200);
    }
    const after = c.req.header('last-event-id');
    const verifyAgain = c.get('verifyAgain');
    return streamEvents(c, {
      streams,
      open: async (signal) => toEvents(await logs.followLogs(caller, id, query, signal, after)),
      check: async () => logs.checkAccess(await verifyAgain(), id),
    });
  });
}

async function* toEvents(entries: AsyncIterable<AppLogEntry>): AsyncIterable<StreamEvent> {
  for await (const entry of entries) yield { id: entry.position, data: presentLogEntry(entry) };
}
