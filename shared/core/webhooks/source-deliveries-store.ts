import type { Generated, Selectable } from 'kysely';
import type { ReceivedDelivery } from '#shared/core/webhooks/webhooks.ts';
import type { Db, Tables } from '#shared/database/db.ts';
import type { AppId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** The last deliveries about an app, and what was answered: for its owner, who may not see the log of the git host. */
    source_deliveries: {
      id: Generated<string>;
      app_id: AppId;
      provider: string;
      delivery_id: string;
      /** As the provider names it; '' when it does not. */
      event: string;
      outcome: ReceivedDelivery['outcome'];
      message: string;
      received_at: Date;
    };
  }
}

export type SourceDeliveryRow = Selectable<Tables['source_deliveries']>;

/** Of each app. */
const keptDeliveries = 20;

/** Adds a delivery and drops the oldest ones. Does nothing for an app that does not exist. */
export async function addSourceDelivery(db: Db, { app_id, ...row }: Omit<SourceDeliveryRow, 'id'>): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const app = await trx.selectFrom('apps').select('id').where('id', '=', app_id).forKeyShare().executeTakeFirst();
    if (app === undefined) return;
    await trx
      .insertInto('source_deliveries')
      .values({ app_id, ...row })
      .execute();
    const kept = trx
      .selectFrom('source_deliveries')
      .select('id')
      .where('app_id', '=', app_id)
      .orderBy('id', 'desc')
      .limit(keptDeliveries);
    await trx.deleteFrom('source_deliveries').where('app_id', '=', app_id).where('id', 'not in', kept).execute();
  });
}

/** Newest first. */
export async function listSourceDeliveries(db: Db, appId: AppId): Promise<SourceDeliveryRow[]> {
  return db.selectFrom('source_deliveries').selectAll().where('app_id', '=', appId).orderBy('id', 'desc').execute();
}
