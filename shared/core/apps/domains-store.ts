import type { Selectable } from 'kysely';
import type { Database, Db } from '#shared/database/schema.ts';
import type { AppId } from '#shared/ids.ts';

export type DomainRow = Selectable<Database['domains']>;

/** Whose a host is, with what there is to know of that app. */
export type HolderRow = DomainRow & Pick<Selectable<Database['apps']>, 'tenant_id' | 'name' | 'deleted_at'>;

export async function readDomain(db: Db, appId: AppId, host: string): Promise<DomainRow | undefined> {
  return db.selectFrom('domains').selectAll().where('app_id', '=', appId).where('host', '=', host).executeTakeFirst();
}

/** The one app that has the host, also while it is being taken away. Claims that are not proven have no part in it. */
export async function readHolder(db: Db, host: string): Promise<HolderRow | undefined> {
  return db
    .selectFrom('domains')
    .innerJoin('apps', 'apps.id', 'domains.app_id')
    .selectAll('domains')
    .select(['apps.tenant_id', 'apps.name', 'apps.deleted_at'])
    .where('domains.host', '=', host)
    .where('domains.status', '!=', 'pending')
    .executeTakeFirst();
}

/** Hosts that shall lead to the app, in the order in which they were added. */
export async function listActiveHosts(db: Db, appId: AppId): Promise<string[]> {
  const rows = await db
    .selectFrom('domains')
    .select('host')
    .where('app_id', '=', appId)
    .where('status', '=', 'active')
    .orderBy('created_at')
    .orderBy('host')
    .execute();
  return rows.map((row) => row.host);
}
