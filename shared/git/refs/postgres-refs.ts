import { type RawBuilder, sql } from 'kysely';
import type { Db, UpdatedAt } from '#shared/database/db.ts';
import type { Ref, RefChange } from '#shared/git/git-storage.ts';
import { applicableChanges } from '#shared/git/refs/applicable-changes.ts';
import { prefixRanges } from '#shared/git/refs/prefix-ranges.ts';
import type { RefDriver } from '#shared/git/refs/ref-driver.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    git_refs: { repository_id: RepositoryId; name: string; oid: ObjectId; updated_at: UpdatedAt };
  }
}

/** From this number of names on, reading all refs is faster than looking up each. */
const manyNames = 5000;

/** Refs in the table `git_refs`. Each method runs a fixed number of statements, whatever the number of refs. */
export function createPostgresRefs(db: Db): RefDriver {
  const inTransaction = <T>(within: Db, run: (transaction: Db) => Promise<T>): Promise<T> =>
    within.isTransaction ? run(within) : within.transaction().execute(run);
  return {
    async listRefs(repositoryId, within = db) {
      return await within
        .selectFrom('git_refs')
        .select(['name', 'oid'])
        .where('repository_id', '=', repositoryId)
        .orderBy('name')
        .execute();
    },
    async listRefsBelow(repositoryId, prefixes) {
      const ranges = prefixRanges(prefixes);
      const { rows } = await sql<Ref>`
        select refs.name, refs.oid
        from ${unnest({ from: ranges.map(([from]) => from), below: ranges.map(([, below]) => below) })} as range (first, after)
        join git_refs refs on refs.repository_id = ${repositoryId} and refs.name >= range.first and refs.name < range.after
        order by refs.name`.execute(db);
      return rows;
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
    readRefs: (repositoryId, names) => readNamed(db, repositoryId, names),
    readNeighbours: (repositoryId, changes, within = db) => readNeighbours(within, repositoryId, changes),
    async countRefs(repositoryId) {
      const { count } = await db
        .selectFrom('git_refs')
        .select((count) => count.fn.countAll<string>().as('count'))
        .where('repository_id', '=', repositoryId)
        .executeTakeFirstOrThrow();
      return Number(count);
    },
    async compareAndSwap(within, repositoryId, changes) {
      return await inTransaction(within, async (transaction) => {
        const applicable = await findApplicable(transaction, repositoryId, changes);
        if (applicable.length < changes.length) return false;
        await write(transaction, repositoryId, changes);
        return true;
      });
    },
    async swapEach(within, repositoryId, changes) {
      return await inTransaction(within, async (transaction) => {
        const applicable = await findApplicable(transaction, repositoryId, changes);
        await write(transaction, repositoryId, applicable);
        return new Set(applicable.map(({ name }) => name));
      });
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

/** Locks the refs and packs of a repository until the transaction ends. */
export async function lockRepository(db: Db, repositoryId: RepositoryId): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`git_refs ${repositoryId}`}, 0))`.execute(db);
}

async function findApplicable(db: Db, repositoryId: RepositoryId, changes: readonly RefChange[]): Promise<readonly RefChange[]> {
  // Nobody changes what is read below before it is written.
  await lockRepository(db, repositoryId);
  return applicableChanges(await readNeighbours(db, repositoryId, changes), changes);
}

async function write(db: Db, repositoryId: RepositoryId, changes: readonly RefChange[]): Promise<void> {
  const deleted = changes.flatMap(({ name, oldOid, newOid }) => (oldOid !== undefined && newOid === undefined ? name : []));
  if (deleted.length > 0) {
    await sql`delete from git_refs where repository_id = ${repositoryId} and name = any(${deleted}::text[])`.execute(db);
  }
  const written = changes.flatMap(({ name, oldOid, newOid }) =>
    newOid === undefined || newOid === oldOid ? [] : { name, newOid },
  );
  if (written.length === 0) return;
  await sql`
    insert into git_refs (repository_id, name, oid)
    select ${repositoryId}, name, oid
    from ${unnest({ names: written.map(({ name }) => name), oids: written.map(({ newOid }) => newOid) })} as changed (name, oid)
    on conflict (repository_id, name) do update set oid = excluded.oid, updated_at = now()`.execute(db);
}

async function readNeighbours(db: Db, repositoryId: RepositoryId, changes: readonly RefChange[]): Promise<Map<string, ObjectId>> {
  const created = changes.flatMap(({ name, oldOid, newOid }) => (oldOid === undefined && newOid !== undefined ? name : []));
  const slashes = created.reduce((sum, name) => sum + name.split('/').length - 1, 0);
  if (changes.length + slashes > manyNames) return await readNamed(db, repositoryId);
  const names = [...new Set([...changes.map(({ name }) => name), ...created.flatMap(parents)])];
  const found = await readNamed(db, repositoryId, names);
  if (created.length === 0) return found;
  const deleted = changes.flatMap(({ name, newOid }) => (newOid === undefined ? name : []));
  // "0" comes after "/": all names below a name are between them. One ref that stays is enough for a conflict.
  const { rows } = await sql<Ref>`
    select below.name, below.oid from unnest(${created}::text[]) as created (name)
    cross join lateral (
      select name, oid from git_refs
      where repository_id = ${repositoryId} and name > created.name || '/' and name < created.name || '0'
        and name <> all(${deleted}::text[])
      limit 1
    ) as below`.execute(db);
  for (const { name, oid } of rows) found.set(name, oid);
  return found;
}

/** Refs by name. @param names default: all refs */
async function readNamed(db: Db, repositoryId: RepositoryId, names?: readonly string[]): Promise<Map<string, ObjectId>> {
  let query = db.selectFrom('git_refs').select(['name', 'oid']).where('repository_id', '=', repositoryId);
  if (names !== undefined) query = query.where(sql<boolean>`name = any(${names}::text[])`);
  return new Map((await query.execute()).map(({ name, oid }) => [name, oid]));
}

/** The columns as rows of a table. Arrays avoid the limit of 65,535 parameters, and the statement is the same for any number of rows. */
function unnest(columns: Readonly<Record<string, readonly string[]>>): RawBuilder<unknown> {
  return sql`unnest(${sql.join(Object.values(columns).map((values) => sql`${values}::text[]`))})`;
}

function parents(name: string): string[] {
  const parts = name.split('/');
  return parts.slice(1).map((_, i) => parts.slice(0, i + 1).join('/'));
}
