import { type Generated, type SqlBool, sql } from 'kysely';
import type { Db } from '#shared/database/db.ts';
import type { AppId, RunId, UserId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** A row per command that runs. The process that follows it renews `seen_at`, by the clock of the database. */
    runs: { id: RunId; app_id: AppId; user_id: UserId; seen_at: Generated<Date> };
  }
}

/** A run that nobody has renewed for so long has ended with the process that followed it. */
const liveSeconds = 60;
/** A condition on `runs`. */
export const isLiveRun = sql<SqlBool>`runs.seen_at > now() - make_interval(secs => ${sql.lit(liveSeconds)})`;

/** How often a run is renewed. */
export const renewSeconds = 15;

/** Adds a run, and removes the app's runs that have ended with their process. */
export async function insertRun(trx: Db, run: { id: RunId; app_id: AppId; user_id: UserId }): Promise<void> {
  await trx
    .deleteFrom('runs')
    .where('app_id', '=', run.app_id)
    .where((where) => where.not(isLiveRun))
    .execute();
  await trx.insertInto('runs').values(run).execute();
}

/** The run goes on. */
export async function renewRun(db: Db, id: RunId): Promise<void> {
  await db.updateTable('runs').set({ seen_at: sql<Date>`now()` }).where('id', '=', id).execute();
}

/** The run has ended. */
export async function deleteRun(db: Db, id: RunId): Promise<void> {
  await db.deleteFrom('runs').where('id', '=', id).execute();
}

/** Whether the app has this run, and it goes on. */
export async function hasRun(db: Db, appId: AppId, id: RunId): Promise<boolean> {
  const row = await db
    .selectFrom('runs')
    .select('id')
    .where('app_id', '=', appId)
    .where('id', '=', id)
    .where(isLiveRun)
    .executeTakeFirst();
  return row !== undefined;
}
