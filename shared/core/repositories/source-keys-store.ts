import type { JSONColumnType, Selectable } from 'kysely';
import type { Db, Tables } from '#shared/database/db.ts';
import type { AppId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** The SSH key with which an app reads its source. */
    source_keys: {
      app_id: AppId;
      public_key: string;
      /** Sealed PEM. */
      private_key: string;
      /** By `host:port`: the key in base64 that the host showed first. */
      host_keys: JSONColumnType<Record<string, string>, string | undefined, string>;
    };
  }
}

export type SourceKeyRow = Selectable<Tables['source_keys']>;

/** Undefined for an app without a deploy key. */
export async function readSourceKeyRow(db: Db, appId: AppId): Promise<SourceKeyRow | undefined> {
  return db.selectFrom('source_keys').selectAll().where('app_id', '=', appId).executeTakeFirst();
}

/** Does nothing when the app has a key. */
export async function insertSourceKey(db: Db, row: Omit<SourceKeyRow, 'host_keys'>): Promise<void> {
  await db
    .insertInto('source_keys')
    .values(row)
    .onConflict((conflict) => conflict.column('app_id').doNothing())
    .execute();
}

/** Adds a host's key to those the app has. Does nothing when the app has no key of its own. */
export async function addHostKey(db: Db, appId: AppId, { host, key }: { host: string; key: string }): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const row = await trx
      .selectFrom('source_keys')
      .select('host_keys')
      .where('app_id', '=', appId)
      .forUpdate()
      .executeTakeFirst();
    if (row === undefined) return;
    const host_keys = JSON.stringify({ ...row.host_keys, [host]: key });
    await trx.updateTable('source_keys').set({ host_keys }).where('app_id', '=', appId).execute();
  });
}

/** Forgets the host keys of the git host: the next one that it shows is trusted. */
export async function clearHostKeys(db: Db, appId: AppId): Promise<void> {
  await db.updateTable('source_keys').set({ host_keys: '{}' }).where('app_id', '=', appId).execute();
}
