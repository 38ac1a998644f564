import type { Db } from '#shared/database/db.ts';
import type { AppId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** The variables that an app has now. `value` is sealed. */
    config_vars: { app_id: AppId; name: string; value: string };
  }
}

/** By name; the values are sealed. */
export async function listConfigVars(db: Db, appId: AppId): Promise<{ name: string; value: string }[]> {
  return db.selectFrom('config_vars').select(['name', 'value']).where('app_id', '=', appId).orderBy('name').execute();
}

/** Whether the app itself has set the variable. */
export async function hasConfigVar(db: Db, appId: AppId, name: string): Promise<boolean> {
  const row = await db
    .selectFrom('config_vars')
    .select('name')
    .where('app_id', '=', appId)
    .where('name', '=', name)
    .executeTakeFirst();
  return row !== undefined;
}

/** Replaces all variables of the app. @param variables with sealed values */
export async function replaceConfigVars(
  trx: Db,
  appId: AppId,
  variables: readonly { name: string; value: string }[],
): Promise<void> {
  await trx.deleteFrom('config_vars').where('app_id', '=', appId).execute();
  if (variables.length === 0) return;
  await trx
    .insertInto('config_vars')
    .values(variables.map((variable) => ({ app_id: appId, ...variable })))
    .execute();
}
