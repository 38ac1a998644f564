import { z } from '@hono/zod-openapi';
import { timestamp } from '#api/openapi/schemas.ts';
import type { ProcessType } from '#shared/core/releases/releases.ts';
import type { AppLogEntry } from '#shared/platform/app-logs.ts';

export const ProcessSchema = z
  .object({
    type: z.string().openapi({ example: 'web' }),
    command: z.string().openapi({ example: 'node server.js' }),
    quantity: z.int().openapi({ description: 'Desired number of instances.', example: 1 }),
    instances: z.array(
      z.object({
        name: z.string().openapi({ example: 'web.1' }),
        state: z.enum(['starting', 'up', 'crashed', 'stopping']),
        release_version: z.int(),
        started_at: timestamp,
        restarts: z.int(),
      }),
    ),
  })
  .openapi('Process');

export const RestartSchema = z
  .object({ restarted_at: timestamp, processes: z.array(z.string()).openapi({ example: ['web', 'worker'] }) })
  .openapi('Restart');

export const LogEntrySchema = z
  .object({
    ts: timestamp,
    process: z
      .string()
      .openapi({ description: 'Name of the instance. `paas`: the line is from the platform.', example: 'web.1' }),
    stream: z.enum(['stdout', 'stderr', 'platform']),
    release_version: z.int(),
    message: z.string(),
  })
  .openapi('LogEntry');

/** A process type with its instances. */
export function presentProcess(process: ProcessType): z.infer<typeof ProcessSchema> {
  return {
    type: process.type,
    command: process.command,
    quantity: process.quantity,
    instances: process.instances.map((instance) => ({
      name: instance.name,
      state: instance.state,
      release_version: instance.releaseVersion,
      started_at: instance.startedAt.toISOString(),
      restarts: instance.restarts,
    })),
  };
}

/** A line of an app's log. */
export function presentLogEntry(entry: AppLogEntry): z.infer<typeof LogEntrySchema> {
  return {
    ts: entry.ts.toISOString(),
    process: entry.process,
    stream: entry.stream,
    release_version: entry.releaseVersion,
    message: entry.message,
  };
}
