import { type Generated, type JSONColumnType, type Selectable, sql } from 'kysely';
import type { Db, Tables } from '#shared/database/db.ts';
import type { AppId, ObjectId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** Branches of followed repositories that deliveries named and that the git host was not asked about since. */
    source_hints: {
      id: Generated<string>;
      app_id: AppId;
      branch: string;
      /** As the delivery says; null when the branch was deleted. */
      commit: string | null;
      /** The message of the commit asks for no build. */
      skips_build: boolean;
      created_at: Date;
    };
    /** What the git host answered last. An app that never had a delivery has no row. */
    source_looks: {
      app_id: AppId;
      /** The repository that was asked for. */
      url: string;
      /** When the question was sent. */
      asked_at: Date;
      /** Commit by branch. */
      tips: JSONColumnType<Record<string, ObjectId>>;
    };
  }
}

export type HintRow = Selectable<Tables['source_hints']>;
export type LookRow = Selectable<Tables['source_looks']>;

/** Notes what a delivery named, until the git host was asked for it. */
export async function insertHint(trx: Db, hint: Omit<HintRow, 'id'>): Promise<HintRow['id']> {
  const { id } = await trx.insertInto('source_hints').values(hint).returning('id').executeTakeFirstOrThrow();
  return id;
}

/** Oldest first. */
export async function listHints(db: Db, appId: AppId): Promise<HintRow[]> {
  return db.selectFrom('source_hints').selectAll().where('app_id', '=', appId).orderBy('id').execute();
}

/** False when another look has used it. */
export async function hasHint(db: Db, id: HintRow['id']): Promise<boolean> {
  return (await db.selectFrom('source_hints').select('id').where('id', '=', id).executeTakeFirst()) !== undefined;
}

/** Deletes hints that were followed. */
export async function deleteHints(trx: Db, ids: readonly HintRow['id'][]): Promise<void> {
  if (ids.length > 0) await trx.deleteFrom('source_hints').where('id', 'in', ids).execute();
}

/** What the git host answered last. Undefined before the first answer. */
export async function readLook(db: Db, appId: AppId): Promise<LookRow | undefined> {
  return db.selectFrom('source_looks').selectAll().where('app_id', '=', appId).executeTakeFirst();
}

/** Forgets what the git host answered, and what it should be asked: the app follows something else, or nothing. */
export async function deleteLook(trx: Db, appId: AppId): Promise<void> {
  await trx.deleteFrom('source_looks').where('app_id', '=', appId).execute();
  await trx.deleteFrom('source_hints').where('app_id', '=', appId).execute();
}

/** Replaces what the git host answered last. */
export async function writeLook(
  trx: Db,
  { tips, ...look }: Omit<LookRow, 'tips'> & { tips: ReadonlyMap<string, ObjectId> },
): Promise<void> {
  const row = { ...look, tips: JSON.stringify(Object.fromEntries(tips)) };
  await trx
    .insertInto('source_looks')
    .values(row)
    .onConflict((conflict) =>
      conflict.column('app_id').doUpdateSet({ url: row.url, asked_at: row.asked_at, tips: sql`excluded.tips` }),
    )
    .execute();
}
