import type { ColumnType } from 'kysely';
import type { CreatedAt, Db } from '#shared/database/db.ts';
import type { PackCatalog } from '#shared/git/packs/catalog/pack-catalog.ts';
import { lockRepository } from '#shared/git/refs/postgres-refs.ts';
import type { RepositoryId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** `pack_id` is the pack's trailing checksum. With `retired_at`, another pack holds its objects. */
    git_packs: {
      repository_id: RepositoryId;
      pack_id: string;
      object_count: number;
      bytes: number;
      created_at: CreatedAt;
      /** Nothing needed its objects when they were last looked at. */
      unreachable_since: ColumnType<Date | null, Date | null | undefined, Date | null>;
      retired_at: ColumnType<Date | null, Date | null | undefined, Date | null>;
    };
  }
}

/** The catalog in the table `git_packs`. */
export function createPostgresPackCatalog(db: Db): PackCatalog {
  return {
    async listPacks(repositoryId, within = db) {
      const rows = await within
        .selectFrom('git_packs')
        .select(['pack_id as packId', 'object_count as objectCount', 'bytes', 'unreachable_since'])
        .where('repository_id', '=', repositoryId)
        .where('retired_at', 'is', null)
        .orderBy('unreachable_since', (order) => order.asc().nullsFirst())
        .orderBy('created_at')
        .orderBy('pack_id')
        .execute();
      return rows.map(({ unreachable_since, ...pack }) => ({ ...pack, unreachableSince: unreachable_since ?? undefined }));
    },
    async countPacks(within, repositoryId) {
      const { count } = await within
        .selectFrom('git_packs')
        .select(({ fn }) => fn.countAll<string>().as('count'))
        .where('repository_id', '=', repositoryId)
        .where('retired_at', 'is', null)
        .where('unreachable_since', 'is', null)
        .executeTakeFirstOrThrow();
      return Number(count);
    },
    async withLock(within, repositoryId, use) {
      const run = async (transaction: Db) => {
        await lockRepository(transaction, repositoryId);
        return await use(transaction);
      };
      return within?.isTransaction === true ? await run(within) : await (within ?? db).transaction().execute(run);
    },
    async addPack(within, repositoryId, { packId, objectCount, bytes }, unreachableSince) {
      const state = { unreachable_since: unreachableSince ?? null, retired_at: null };
      await within
        .insertInto('git_packs')
        .values({ repository_id: repositoryId, pack_id: packId, object_count: objectCount, bytes, ...state })
        .onConflict((conflict) => conflict.columns(['repository_id', 'pack_id']).doUpdateSet(state))
        .execute();
    },
    async retirePacks(within, repositoryId, packIds, at) {
      await within
        .updateTable('git_packs')
        .set({ retired_at: at })
        .where('repository_id', '=', repositoryId)
        .where('pack_id', 'in', packIds)
        .execute();
    },
    async reinstatePacks(within, repositoryId, except) {
      let update = within
        .updateTable('git_packs')
        .set({ unreachable_since: null })
        .where('repository_id', '=', repositoryId)
        .where('retired_at', 'is', null)
        .where('unreachable_since', 'is not', null);
      if (except.length > 0) update = update.where('pack_id', 'not in', except);
      const { numUpdatedRows } = await update.executeTakeFirstOrThrow();
      return numUpdatedRows > 0n;
    },
    async forgetRetired(before) {
      await db.deleteFrom('git_packs').where('retired_at', '<=', before).execute();
    },
    async knownPacks(repositoryId, within = db) {
      const rows = await within.selectFrom('git_packs').select('pack_id').where('repository_id', '=', repositoryId).execute();
      return new Set(rows.map(({ pack_id }) => pack_id));
    },
    async deletePacks(repositoryId) {
      const { numDeletedRows } = await db
        .deleteFrom('git_packs')
        .where('repository_id', '=', repositoryId)
        .executeTakeFirstOrThrow();
      return numDeletedRows > 0n;
    },
  };
}
