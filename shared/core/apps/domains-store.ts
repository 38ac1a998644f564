import type { Selectable } from 'kysely';
import type { DomainStatus } from '#shared/core/apps/apps.ts';
import type { CreatedAt, Db, Tables } from '#shared/database/db.ts';
import type { AppId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** Custom hosts of apps. Any app may have a `pending` row of a host; only one app may have another one. */
    domains: { app_id: AppId; host: string; status: DomainStatus; proof: string; created_at: CreatedAt };
  }
}

export type DomainRow = Selectable<Tables['domains']>;

/** The domain of the one app that has the host, with that app's tenant, name and deletion. */
export type HolderRow = DomainRow & Pick<Selectable<Tables['apps']>, 'tenant_id' | 'name' | 'deleted_at'>;

/** Undefined if the app has no such domain. */
export async function readDomain(db: Db, appId: AppId, host: string): Promise<DomainRow | undefined> {
  return db.selectFrom('domains').selectAll().where('app_id', '=', appId).where('host', '=', host).executeTakeFirst();
}

/** The app that has the host, also while it is being removed from it. Pending domains do not count. */
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

/** Pending and active domains of an app, oldest first. */
export async function listDomains(db: Db, appId: AppId): Promise<DomainRow[]> {
  return db
    .selectFrom('domains')
    .selectAll()
    .where('app_id', '=', appId)
    .where('status', '!=', 'removing')
    .orderBy('created_at')
    .orderBy('host')
    .execute();
}

/** Hosts that lead to the app, oldest first. */
export async function listActiveHosts(db: Db, appId: AppId): Promise<string[]> {
  return (await listDomains(db, appId)).filter(({ status }) => status === 'active').map(({ host }) => host);
}

/** Domains of an app in any state. */
export async function countDomains(db: Db, appId: AppId): Promise<number> {
  const { count } = await db
    .selectFrom('domains')
    .select((domain) => domain.fn.countAll<number>().as('count'))
    .where('app_id', '=', appId)
    .executeTakeFirstOrThrow();
  return count;
}

/** @throws a unique violation when the domain is not pending and another app has the host */
export async function insertDomain(db: Db, row: DomainRow): Promise<void> {
  await db.insertInto('domains').values(row).execute();
}

/** `pending` to `active`. @throws a unique violation when another app has the host */
export async function activateDomain(trx: Db, appId: AppId, host: string): Promise<void> {
  await changeStatus(trx, { appId, host, from: 'pending', to: 'active' });
}

/** `active` to `removing`. */
export async function beginDomainRemoval(trx: Db, appId: AppId, host: string): Promise<void> {
  await changeStatus(trx, { appId, host, from: 'active', to: 'removing' });
}

async function changeStatus(
  trx: Db,
  { appId, host, from, to }: { appId: AppId; host: string; from: DomainStatus; to: DomainStatus },
): Promise<void> {
  await trx
    .updateTable('domains')
    .set({ status: to })
    .where('app_id', '=', appId)
    .where('host', '=', host)
    .where('status', '=', from)
    .execute();
}

/** Deletes the domain of an app, if there is one. */
export async function deleteDomain(db: Db, appId: AppId, host: string): Promise<void> {
  await db.deleteFrom('domains').where('app_id', '=', appId).where('host', '=', host).execute();
}

/** Hosts whose route is to be removed: read before the app's routes are updated, deleted after that. */
export async function listRemovedHosts(db: Db, appId: AppId): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('domains')
    .select('host')
    .where('app_id', '=', appId)
    .where('status', '=', 'removing')
    .execute();
  return rows.map(({ host }) => host);
}

/** No route leads from these hosts to the app any more: other apps may have them. */
export async function deleteRemovedHosts(db: Db, appId: AppId, hosts: readonly string[]): Promise<void> {
  if (hosts.length === 0) return;
  await db
    .deleteFrom('domains')
    .where('app_id', '=', appId)
    .where('host', 'in', hosts)
    .where('status', '=', 'removing')
    .execute();
}
