import type { TenantId } from '#shared/ids.ts';
import type { JobSlots } from '#shared/jobs/jobs.ts';

/** The flag of a tenant's jobs that take these slots. */
export function tenantFlag(slots: JobSlots, tenant: string): string {
  return `${slots}:${tenant}`;
}

/** The flags of a job in graphile-worker's table: a worker that takes a job names the flags it must not have. */
export function flagsOf(slots: JobSlots, tenant: TenantId | undefined): string[] {
  return tenant === undefined ? [slots] : [slots, tenantFlag(slots, tenant)];
}
