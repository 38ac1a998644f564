import type { Context } from '#shared/core/context.ts';
import type { Db } from '#shared/database/schema.ts';
import type { AppId, RepositoryId } from '#shared/ids.ts';
import type { SourceKey } from '#shared/sources/source-hosts.ts';

/** Bound into the seal: the key of one app does not open as another's. */
const purpose = (appId: string): string => `source key of app ${appId}`;

/** The public half of the key by which an app reads its source; made when first asked for. */
export async function ensureSourceKey({ db, secrets, sources }: Context, appId: AppId): Promise<string> {
  const existing = await db.selectFrom('source_keys').select('public_key').where('app_id', '=', appId).executeTakeFirst();
  if (existing !== undefined) return existing.public_key;
  const { privateKey, publicKey } = await sources.createKey();
  await db
    .insertInto('source_keys')
    .values({ app_id: appId, public_key: publicKey, private_key: await secrets.seal(privateKey, purpose(appId)) })
    .onConflict((conflict) => conflict.column('app_id').doNothing())
    .execute();
  const kept = await db.selectFrom('source_keys').select('public_key').where('app_id', '=', appId).executeTakeFirstOrThrow();
  return kept.public_key;
}

/** Of the app that owns the repository: its previews read with the same key. */
export async function readSourceKey({ db, secrets }: Context, repositoryId: RepositoryId): Promise<SourceKey | undefined> {
  const appId = repositoryId as string as AppId;
  const row = await db.selectFrom('source_keys').selectAll().where('app_id', '=', appId).executeTakeFirst();
  if (row === undefined) return undefined;
  return { privateKey: await secrets.open(row.private_key, purpose(appId)), hostKeys: row.host_keys };
}

export async function rememberHostKey(
  { db }: Context,
  repositoryId: RepositoryId,
  { host, key }: { host: string; key: string },
): Promise<void> {
  const appId = repositoryId as string as AppId;
  await db.transaction().execute(async (trx) => {
    const row = await trx
      .selectFrom('source_keys')
      .select('host_keys')
      .where('app_id', '=', appId)
      .forUpdate()
      .executeTakeFirst();
    if (row === undefined) return;
    const host_keys = JSON.stringify({ ...row.host_keys, [host]: key });
    await trx.updateTable('source_keys').set({ host_keys }).where('app_id', '=', appId).execute();
  });
}

/** Whoever sets a source anew has looked at it: its host may show another key from now on. */
export async function forgetHostKeys(db: Db, appId: AppId): Promise<void> {
  await db.updateTable('source_keys').set({ host_keys: '{}' }).where('app_id', '=', appId).execute();
}
