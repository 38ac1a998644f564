import { z } from '@hono/zod-openapi';
import type { AppSettings } from '#shared/core/releases/settings.ts';
import { limits } from '#shared/limits.ts';

const { bootSeconds, healthTimeoutSeconds } = limits.app;

export const SettingsSchema = z
  .object({
    health_path: z.string().nullable().openapi({
      description: 'HTTP path that must answer below 500 before an instance gets traffic. Default: a TCP connect is enough.',
      example: '/healthz',
    }),
    health_timeout_seconds: z
      .number()
      .nullable()
      .openapi({
        description: `Longest time for one answer of \`health_path\`, 1 to ${healthTimeoutSeconds.most}. Default: ${healthTimeoutSeconds.usual}.`,
        example: healthTimeoutSeconds.usual,
      }),
    boot_timeout_seconds: z
      .number()
      .nullable()
      .openapi({
        description: `Longest time from the start of an instance until it is up, 1 to ${limits.app.bootTimeoutSeconds.most}. Default: ${bootSeconds}.`,
        example: bootSeconds,
      }),
    session_affinity: z.boolean().nullable().openapi({
      description: 'Whether a visitor stays with one release and one instance. Default: true.',
      example: true,
    }),
    directory: z.string().nullable().openapi({
      description: 'Folder of the source that the app is built of. Default: all of the source.',
      example: 'services/api',
    }),
    client_variables: z
      .boolean()
      .nullable()
      .openapi({
        description:
          'Whether add-ons also set the variables that their clients read by themselves: `REDIS_URL`, and `PGHOST`, `PGPORT`, `PGUSER`, ' +
          '`PGPASSWORD`, `PGDATABASE`. Variables of the app with these names win. Default: false.',
        example: true,
      }),
  })
  .openapi('Settings');

/** The settings of an app; null where none is set. */
export function presentSettings(settings: AppSettings): z.infer<typeof SettingsSchema> {
  return {
    health_path: settings.healthPath,
    health_timeout_seconds: settings.healthTimeoutSeconds,
    boot_timeout_seconds: settings.bootTimeoutSeconds,
    session_affinity: settings.sessionAffinity,
    directory: settings.directory,
    client_variables: settings.clientVariables,
  };
}
