import type { Selectable } from 'kysely';
import type { AppRow } from '#shared/core/apps/apps-store.ts';
import { type AppSettings, noSettings } from '#shared/core/releases/settings.ts';
import type { Db, Tables } from '#shared/database/db.ts';
import type { AppId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** What an app sets; null and no row: not set. */
    app_settings: {
      app_id: AppId;
      health_path: string | null;
      health_timeout_seconds: number | null;
      boot_timeout_seconds: number | null;
      session_affinity: boolean | null;
      directory: string | null;
      client_variables: boolean | null;
    };
  }
}

/** The settings of an app; those that a preview does not have itself are its parent's. */
export async function readSettings(db: Db, app: Pick<AppRow, 'id' | 'parent_app_id'>): Promise<AppSettings> {
  const ids = app.parent_app_id === null ? [app.id] : [app.id, app.parent_app_id];
  const rows = await db.selectFrom('app_settings').selectAll().where('app_id', 'in', ids).execute();
  const own = toSettings(rows.find(({ app_id }) => app_id === app.id));
  const inherited = toSettings(rows.find(({ app_id }) => app_id === app.parent_app_id));
  return {
    healthPath: own.healthPath ?? inherited.healthPath,
    healthTimeoutSeconds: own.healthTimeoutSeconds ?? inherited.healthTimeoutSeconds,
    bootTimeoutSeconds: own.bootTimeoutSeconds ?? inherited.bootTimeoutSeconds,
    sessionAffinity: own.sessionAffinity ?? inherited.sessionAffinity,
    directory: own.directory ?? inherited.directory,
    clientVariables: own.clientVariables ?? inherited.clientVariables,
  };
}

/** Stores these settings of an app; others stay as they are. */
export async function writeSettings(trx: Db, appId: AppId, changes: Partial<AppSettings>): Promise<void> {
  const row = await trx.selectFrom('app_settings').selectAll().where('app_id', '=', appId).executeTakeFirst();
  const after = { ...toSettings(row), ...changes };
  const columns = {
    health_path: after.healthPath,
    health_timeout_seconds: after.healthTimeoutSeconds,
    boot_timeout_seconds: after.bootTimeoutSeconds,
    session_affinity: after.sessionAffinity,
    directory: after.directory,
    client_variables: after.clientVariables,
  };
  await trx
    .insertInto('app_settings')
    .values({ app_id: appId, ...columns })
    .onConflict((conflict) => conflict.column('app_id').doUpdateSet(columns))
    .execute();
}

function toSettings(row: Selectable<Tables['app_settings']> | undefined): AppSettings {
  if (row === undefined) return noSettings;
  return {
    healthPath: row.health_path,
    healthTimeoutSeconds: row.health_timeout_seconds,
    bootTimeoutSeconds: row.boot_timeout_seconds,
    sessionAffinity: row.session_affinity,
    directory: row.directory,
    clientVariables: row.client_variables,
  };
}
