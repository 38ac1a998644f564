import { createRoute, z } from '@hono/zod-openapi';
import type { Api } from '#api/http/api-env.ts';
import { type StreamEvent, streamEvents, wantsEvents } from '#api/http/event-stream.ts';
import { answer, appParams, bearer, dataOf, guarded, refusalsOf } from '#api/openapi/schemas.ts';
import { LogEntrySchema, presentLogEntry } from '#api/resources/process.ts';
import type { Logs } from '#shared/core/telemetry/telemetry.ts';
import type { AppLogEntry, AppLogQuery } from '#shared/platform/app-logs.ts';

const mostLines = 10_000;

const readLogs = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/logs',
  operationId: 'readLogs',
  summary: 'What an app said: recent entries, or an event stream that follows',
  description:
    'Kept over deploys, crashes and restarts. With `Accept: text/event-stream` the entries asked for come first and new ones as they are ' +
    'written; `Last-Event-ID` resumes without a gap. A stream ends after an hour: connect again with a fresh token.',
  tags: ['logs'],
  security: bearer,
  request: {
    params: appParams,
    query: z.object({
      lines: z.coerce.number().int().min(1).max(mostLines).default(100).openapi({ description: 'The newest that many.' }),
      since: z.iso.datetime({ offset: true }).optional().openapi({ format: 'date-time' }),
      process: z
        .string()
        .regex(/^[A-Za-z0-9_-]{1,64}(\.\d{1,4})?$/)
        .optional()
        .openapi({ description: 'A process type, or one instance.', example: 'web.1' }),
      release: z
        .string()
        .regex(/^v?\d{1,9}$/)
        .optional()
        .openapi({ description: 'Version of a release.', example: 'v7' }),
    }),
  },
  responses: {
    200: {
      description: 'Entries in the order of time.',
      content: {
        ...answer(dataOf(z.array(LogEntrySchema)), '').content,
        'text/event-stream': { schema: z.string() },
      },
    },
    ...guarded,
    ...refusalsOf(404, 422),
  },
});

export function addLogRoutes(api: Api, logs: Logs): void {
  api.openapi(readLogs, async (c) => {
    const { id } = c.req.valid('param');
    const { lines, since, process, release } = c.req.valid('query');
    const query: AppLogQuery = {
      lines,
      ...(since === undefined ? {} : { since: new Date(since) }),
      ...(process === undefined ? {} : { process }),
      ...(release === undefined ? {} : { releaseVersion: Number(release.replace('v', '')) }),
    };
    const caller = c.get('caller');
    if (!wantsEvents(c)) {
      const entries = await logs.readLogs(caller, id, query);
      return c.json({ data: entries.map(presentLogEntry) }, 200);
    }
    const after = c.req.header('last-event-id');
    return streamEvents(c, async (signal) => toEvents(await logs.followLogs(caller, id, query, signal, after)));
  });
}

async function* toEvents(entries: AsyncIterable<AppLogEntry>): AsyncIterable<StreamEvent> {
  for await (const entry of entries) yield { id: entry.position, data: presentLogEntry(entry) };
}
