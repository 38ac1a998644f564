import { requireApp } from '#shared/core/apps/app-access.ts';
import type { AppRow } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import { createLineRedactor, type Environment, type LineRedactor } from '#shared/core/telemetry/redaction.ts';
import type { Logs } from '#shared/core/telemetry/telemetry.ts';
import type { AppLogEntry } from '#shared/platform/app-logs.ts';

/** The variables that lines in an app's log may contain: of its present and earlier releases. Secret. */
export type ReadLoggedEnvironments = (app: Pick<AppRow, 'id' | 'tenant_id'>) => Promise<readonly Environment[]>;

/** Logs of apps, in which the apps' own secrets are replaced. */
export function createLogs(context: Context, readEnvironments: ReadLoggedEnvironments): Logs {
  const { platform } = context;

  async function* redactAll(app: AppRow, entries: AsyncIterable<AppLogEntry>): AsyncGenerator<AppLogEntry> {
    let redactor: LineRedactor | undefined;
    let newest = 0;
    for await (const entry of entries) {
      // A release may have changed the variables since.
      if (redactor === undefined || entry.releaseVersion > newest)
        redactor = createLineRedactor(...(await readEnvironments(app)));
      newest = Math.max(newest, entry.releaseVersion);
      yield redactEntry(redactor, entry);
    }
  }

  return {
    async checkAccess(caller, app) {
      await requireApp(context, caller, app);
    },

    async readLogs(caller, app, query) {
      const { row } = await requireApp(context, caller, app);
      const entries = await platform.logs.readLogs(row.id, query);
      if (entries.length === 0) return [];
      const redactor = createLineRedactor(...(await readEnvironments(row)));
      return entries.map((entry) => redactEntry(redactor, entry));
    },
    async followLogs(caller, app, query, signal, after) {
      const { row } = await requireApp(context, caller, app);
      return redactAll(row, platform.logs.followLogs(row.id, query, signal, after));
    },
  };
}

function redactEntry(redactor: LineRedactor, entry: AppLogEntry): AppLogEntry {
  const message = redactor.redact(`${entry.process} ${entry.stream}`, entry.message);
  return message === entry.message ? entry : { ...entry, message };
}
