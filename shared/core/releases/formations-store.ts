import type { Db } from '#shared/database/db.ts';
import type { AppId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** How many instances of a process type an app was scaled to; a type without a row has its default. */
    formations: { app_id: AppId; type: string; quantity: number };
  }
}

/** Quantities by process type, of the types that were scaled. */
export async function readFormation(db: Db, appId: AppId): Promise<ReadonlyMap<string, number>> {
  const rows = await db.selectFrom('formations').select(['type', 'quantity']).where('app_id', '=', appId).execute();
  return new Map(rows.map(({ type, quantity }) => [type, quantity]));
}

/** Stores how many instances of the type shall run. */
export async function setFormation(trx: Db, appId: AppId, type: string, quantity: number): Promise<void> {
  await trx
    .insertInto('formations')
    .values({ app_id: appId, type, quantity })
    .onConflict((conflict) => conflict.columns(['app_id', 'type']).doUpdateSet({ quantity }))
    .execute();
}
