import { requireApp } from '#shared/core/apps/app-access.ts';
import type { Context } from '#shared/core/context.ts';
import type { Logs } from '#shared/core/telemetry/telemetry.ts';

export function createLogs(context: Context): Logs {
  const { platform } = context;
  return {
    async readLogs(caller, app, query) {
      const { id } = (await requireApp(context, caller, app)).row;
      return platform.logs.readLogs(id, query);
    },
    async followLogs(caller, app, query, signal, after) {
      const { id } = (await requireApp(context, caller, app)).row;
      return platform.logs.followLogs(id, query, signal, after);
    },
  };
}
