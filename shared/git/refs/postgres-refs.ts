import { sql } from 'kysely';
import type { Db } from '#shared/database/schema.ts';
import type { StoredRefs } from '#shared/git/refs/memory-refs.ts';
import { conflictingRef } from '#shared/git/refs/ref-name.ts';
import type { RefChange } from '#shared/git/repository.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';

/** Rows a statement may bring: PostgreSQL takes 65,535 parameters. */
const batch = 5000;

export function createPostgresRefs(db: Db): StoredRefs {
  return {
    async listRefs(repositoryId, within = db) {
      return await within
        .selectFrom('git_refs')
        .select(['name', 'oid'])
        .where('repository_id', '=', repositoryId)
        .orderBy('name')
        .execute();
    },
    async readRef(repositoryId, name) {
      const row = await db
        .selectFrom('git_refs')
        .select('oid')
        .where('repository_id', '=', repositoryId)
        .where('name', '=', name)
        .executeTakeFirst();
      return row?.oid;
    },
    async compareAndSwap(within, repositoryId, changes) {
      if (within.isTransaction) return await swap(within, repositoryId, changes);
      return await within.transaction().execute((transaction) => swap(transaction, repositoryId, changes));
    },
    async deleteRefs(repositoryId) {
      const { numDeletedRows } = await db
        .deleteFrom('git_refs')
        .where('repository_id', '=', repositoryId)
        .executeTakeFirstOrThrow();
      return numDeletedRows > 0n;
    },
  };
}

/** One writer of refs and packs a repository at a time, until its transaction ends. */
export async function lockRepository(db: Db, repositoryId: RepositoryId): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`git_refs ${repositoryId}`}, 0))`.execute(db);
}

async function swap(db: Db, repositoryId: RepositoryId, changes: readonly RefChange[]): Promise<boolean> {
  // Then what is read below is what is changed.
  await lockRepository(db, repositoryId);
  const current = await readNeighbours(db, repositoryId, changes);
  if (changes.some(({ name, oldOid }) => current.get(name) !== oldOid)) return false;
  const names = new Set(current.keys());
  for (const { name } of changes) names.delete(name);
  const written = changes.flatMap(({ name, newOid }) =>
    newOid === undefined ? [] : [{ repository_id: repositoryId, name, oid: newOid }],
  );
  for (const { name } of written) {
    if (conflictingRef(name, names) !== undefined) return false;
    names.add(name);
  }
  const deleted = changes.filter(({ oldOid, newOid }) => oldOid !== undefined && newOid === undefined).map(({ name }) => name);
  for (let at = 0; at < deleted.length; at += batch) {
    await db
      .deleteFrom('git_refs')
      .where('repository_id', '=', repositoryId)
      .where('name', 'in', deleted.slice(at, at + batch))
      .execute();
  }
  for (let at = 0; at < written.length; at += batch) {
    await db
      .insertInto('git_refs')
      .values(written.slice(at, at + batch))
      .onConflict((conflict) =>
        conflict.columns(['repository_id', 'name']).doUpdateSet({ oid: sql`excluded.oid`, updated_at: sql`now()` }),
      )
      .execute();
  }
  return true;
}

/** The refs that are changed, and all that could stand in their way; for many changes simply all refs. */
async function readNeighbours(db: Db, repositoryId: RepositoryId, changes: readonly RefChange[]): Promise<Map<string, ObjectId>> {
  let query = db.selectFrom('git_refs').select(['name', 'oid']).where('repository_id', '=', repositoryId);
  if (changes.length <= 20) {
    query = query.where((where) =>
      where.or(
        changes.flatMap(({ name }) => [
          where('name', 'in', [name, ...parents(name)]),
          // "0" comes after "/": between them is everything below the name.
          where.and([where('name', '>', `${name}/`), where('name', '<', `${name}0`)]),
        ]),
      ),
    );
  }
  return new Map((await query.execute()).map(({ name, oid }) => [name, oid]));
}

function parents(name: string): string[] {
  const parts = name.split('/');
  return parts.slice(1).map((_, i) => parts.slice(0, i + 1).join('/'));
}
