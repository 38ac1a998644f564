import type { Principal } from '#shared/core/principals.ts';
import type { Db } from '#shared/database/schema.ts';
import type { TenantId, UserId } from '#shared/ids.ts';

/** Who a user is in `tenantId`; without one in the tenant they have been in longest. Undefined where they are no member. */
export async function readMembership(db: Db, userId: UserId, tenantId?: TenantId): Promise<Principal | undefined> {
  let select = db.selectFrom('memberships').select(['email', 'tenant_id', 'role']).where('user_id', '=', userId);
  if (tenantId !== undefined) select = select.where('tenant_id', '=', tenantId);
  const row = await select.orderBy('created_at').orderBy('tenant_id').limit(1).executeTakeFirst();
  return row && { userId, email: row.email, tenantId: row.tenant_id, role: row.role };
}
