import { type RawBuilder, sql } from 'kysely';
import type { Db } from '#shared/database/schema.ts';
import type { RepositoryId } from '#shared/ids.ts';

export interface CataloguedPack {
  packId: string;
  objectCount: number;
  bytes: number;
}

/** Which packs are part of a repository. Drivers: PostgreSQL, memory for tests. */
export interface PackCatalog {
  /** Oldest first. */
  listPacks(repositoryId: RepositoryId): Promise<readonly CataloguedPack[]>;
  /** Until the caller's transaction ends, nobody finds the pack unlisted. To be asked for before its files are put in place. */
  lockPack(db: Db, repositoryId: RepositoryId, packId: string): Promise<void>;
  /** Runs `remove` unless the pack is listed, or about to be; then false. */
  ifUnlisted(repositoryId: RepositoryId, packId: string, remove: () => Promise<boolean>): Promise<boolean>;
  /** In the caller's transaction. Again is harmless. */
  addPack(db: Db, repositoryId: RepositoryId, pack: CataloguedPack): Promise<void>;
  /** False when there were none. */
  deletePacks(repositoryId: RepositoryId): Promise<boolean>;
}

export function createPostgresPackCatalog(db: Db): PackCatalog {
  return {
    async listPacks(repositoryId) {
      return await db
        .selectFrom('git_packs')
        .select(['pack_id as packId', 'object_count as objectCount', 'bytes'])
        .where('repository_id', '=', repositoryId)
        .orderBy('created_at')
        .orderBy('pack_id')
        .execute();
    },
    async lockPack(within, repositoryId, packId) {
      await sql`select pg_advisory_xact_lock_shared(${lockOf(repositoryId, packId)})`.execute(within);
    },
    async ifUnlisted(repositoryId, packId, remove) {
      return await db.transaction().execute(async (transaction) => {
        await sql`select pg_advisory_xact_lock(${lockOf(repositoryId, packId)})`.execute(transaction);
        const listed = await transaction
          .selectFrom('git_packs')
          .select('pack_id')
          .where('repository_id', '=', repositoryId)
          .where('pack_id', '=', packId)
          .executeTakeFirst();
        return listed === undefined ? await remove() : false;
      });
    },
    async addPack(within, repositoryId, { packId, objectCount, bytes }) {
      await within
        .insertInto('git_packs')
        .values({ repository_id: repositoryId, pack_id: packId, object_count: objectCount, bytes })
        .onConflict((conflict) => conflict.doNothing())
        .execute();
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

/** Two packs of one number would only wait for each other. */
function lockOf(repositoryId: RepositoryId, packId: string): RawBuilder<unknown> {
  return sql`hashtextextended(${`${repositoryId}/${packId}`}::text, 0)`;
}

export function createMemoryPackCatalog(): PackCatalog {
  const repositories = new Map<RepositoryId, Map<string, CataloguedPack>>();
  return {
    async listPacks(repositoryId) {
      return [...(repositories.get(repositoryId)?.values() ?? [])];
    },
    lockPack: async () => undefined,
    async ifUnlisted(repositoryId, packId, remove) {
      return repositories.get(repositoryId)?.has(packId) === true ? false : await remove();
    },
    async addPack(_db, repositoryId, pack) {
      const packs = repositories.get(repositoryId) ?? new Map<string, CataloguedPack>();
      packs.set(pack.packId, pack);
      repositories.set(repositoryId, packs);
    },
    async deletePacks(repositoryId) {
      return repositories.delete(repositoryId);
    },
  };
}
