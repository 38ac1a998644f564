import type { CreatedAt, Db } from '#shared/database/db.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** Deliveries of git hosts that were processed. */
    webhook_deliveries: { provider: string; delivery_id: string; received_at: CreatedAt };
  }
}

export interface DeliveryName {
  provider: string;
  deliveryId: string;
}

/** Whether a delivery of this id was received before. */
export async function hasDelivery(db: Db, { provider, deliveryId }: DeliveryName): Promise<boolean> {
  const found = await db
    .selectFrom('webhook_deliveries')
    .select('provider')
    .where('provider', '=', provider)
    .where('delivery_id', '=', deliveryId)
    .executeTakeFirst();
  return found !== undefined;
}

/** False when it is there already; waits for another transaction that is just recording it. */
export async function insertDelivery(trx: Db, { provider, deliveryId }: DeliveryName, now: Date): Promise<boolean> {
  const result = await trx
    .insertInto('webhook_deliveries')
    .values({ provider, delivery_id: deliveryId, received_at: now })
    .onConflict((conflict) => conflict.columns(['provider', 'delivery_id']).doNothing())
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** Deletes deliveries that came before a time. */
export async function deleteDeliveries(db: Db, before: Date): Promise<void> {
  await db.deleteFrom('webhook_deliveries').where('received_at', '<', before).execute();
}
