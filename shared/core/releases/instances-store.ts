import { sql } from 'kysely';
import { isLiveRun } from '#shared/core/releases/runs-store.ts';
import type { Db } from '#shared/database/db.ts';
import type { DeployId, TenantId } from '#shared/ids.ts';

/**
 * Instances that the tenant's active apps shall have, with the defaults of `readQuantities`: of each app's current release or of the one
 * that is being brought live, whichever has more. Each one-off command that runs is one more.
 * @param except a deploy whose release does not count
 */
export async function countInstances(db: Db, tenantId: TenantId, except?: DeployId): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select coalesce(sum(most), 0)::int + (
      select count(*) from runs join apps on apps.id = runs.app_id where apps.tenant_id = ${tenantId} and ${isLiveRun})::int as count
    from (
      select max(instances) as most from (
        select apps.id, (
          select sum(coalesce(formation.quantity, case when process.type = 'web' or not releases.processes ? 'web' then 1 else 0 end))
          from jsonb_object_keys(releases.processes) process(type)
          left join formations formation on formation.app_id = apps.id and formation.type = process.type) as instances
        from apps join releases on releases.app_id = apps.id
        where apps.tenant_id = ${tenantId} and apps.deleted_at is null and (releases.id = apps.current_release_id or exists (
          select from deploys where deploys.release_id = releases.id and deploys.status = 'rolling'
            and deploys.id is distinct from ${except ?? null}::uuid))
      ) of_releases group by id
    ) of_apps`.execute(db);
  return rows[0]?.count ?? 0;
}
