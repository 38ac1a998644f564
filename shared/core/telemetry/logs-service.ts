import { requireApp } from '#shared/core/accounts/authorization.ts';
import type { Context } from '#shared/core/context.ts';
import type { Logs } from '#shared/core/telemetry/telemetry.ts';

export function createLogs({ db, platform }: Context): Logs {
  return {
    async readLogs(principal, app, query) {
      const { id } = await requireApp(db, principal, app);
      return platform.logs.readLogs(id, query);
    },
    async followLogs(principal, app, query, signal, after) {
      const { id } = await requireApp(db, principal, app);
      return platform.logs.followLogs(id, query, signal, after);
    },
  };
}
