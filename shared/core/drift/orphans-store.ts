import { sql } from 'kysely';
import type { Db } from '#shared/database/db.ts';
import type { AppId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    orphans: { app_id: AppId; found_at: Date };
  }
}

/** An app that has objects on the platform and is not in the database. */
export interface Orphan {
  appId: AppId;
  /** When it was found first. */
  foundAt: Date;
  isNew: boolean;
}

/** Records that exactly these apps are orphans. The time at which one was found first stays, as long as it is one in each call. */
export async function noteOrphans(db: Db, ids: readonly AppId[], now: Date): Promise<readonly Orphan[]> {
  return db.transaction().execute(async (trx) => {
    await sql`delete from orphans where app_id <> all (${ids})`.execute(trx);
    const { rows } = await sql<{ app_id: AppId; found_at: Date; is_new: boolean }>`
      insert into orphans (app_id, found_at) select unnest(${ids}::uuid[]), ${now}
      on conflict (app_id) do update set found_at = orphans.found_at
      returning app_id, found_at, xmax = 0 as is_new`.execute(trx);
    return rows.map(({ app_id: appId, found_at: foundAt, is_new: isNew }) => ({ appId, foundAt, isNew }));
  });
}
