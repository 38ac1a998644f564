import { type RawBuilder, sql } from 'kysely';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { type AppRow, appColumns } from '#shared/core/apps/apps-store.ts';
import { prepare } from '#shared/database/prepared.ts';
import type { Db, Role } from '#shared/database/schema.ts';
import { isUuid, type TenantId, type UserId } from '#shared/ids.ts';

interface Member {
  email: string;
  member_of: TenantId;
  role: Role;
}

interface MemberQuery {
  userId: UserId;
  /** Null for the tenant they have been in longest. */
  tenantId: TenantId | null;
}

/** Without an app all of its columns are null. */
type MemberAndApp = Member & (AppRow | { [Column in keyof AppRow]: null });

const findMember = prepare<MemberQuery, Member>('find-member', (db, value) =>
  selectMember(db, value('userId'), value('tenantId')).compile(),
);
const findMemberAndAppById = prepareWithApp('find-member-and-app-by-id', 'apps.id');
const findMemberAndAppByName = prepareWithApp('find-member-and-app-by-name', 'apps.name');

/** Who a user is in `tenantId`; without one in the tenant they have been in longest. Undefined where they are no member. */
export async function readMembership(db: Db, userId: UserId, tenantId?: TenantId): Promise<Principal | undefined> {
  const [member] = await findMember.execute(db, { userId, tenantId: tenantId ?? null });
  return member && toPrincipal(userId, member);
}

/** The same, with what is there under an app's id or name, whosever it is. */
export async function readMembershipAndApp(
  db: Db,
  userId: UserId,
  tenantId: TenantId | undefined,
  idOrName: string,
): Promise<Principal | undefined> {
  const statement = isUuid(idOrName) ? findMemberAndAppById : findMemberAndAppByName;
  const [found] = await statement.execute(db, { userId, tenantId: tenantId ?? null, app: idOrName });
  if (found === undefined) return undefined;
  const { email, member_of, role, ...row } = found;
  return { ...toPrincipal(userId, { email, member_of, role }), namedApp: { idOrName, row: row.id === null ? undefined : row } };
}

function selectMember(db: Db, userId: RawBuilder<UserId>, tenantId: RawBuilder<TenantId | null>) {
  return db
    .selectFrom('memberships as member')
    .select(['member.email', 'member.tenant_id as member_of', 'member.role'])
    .where('member.user_id', '=', userId)
    .where(sql<boolean>`(${tenantId}::text is null or member.tenant_id = ${tenantId})`)
    .orderBy('member.created_at')
    .orderBy('member.tenant_id')
    .limit(1);
}

function prepareWithApp(name: string, key: 'apps.id' | 'apps.name') {
  return prepare<MemberQuery & { app: string }, MemberAndApp>(name, (db, value) =>
    selectMember(db, value('userId'), value('tenantId'))
      .leftJoin('apps', (join) => join.on(key, '=', value('app')))
      .leftJoin('releases as current', 'current.id', 'apps.current_release_id')
      .select([...appColumns, 'current.version as current_version'])
      .$castTo<MemberAndApp>()
      .compile(),
  );
}

function toPrincipal(userId: UserId, { email, member_of, role }: Member): Principal {
  return { userId, email, tenantId: member_of, role };
}
