import { sql } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findApp, listApps } from '#shared/core/apps/apps-store.ts';
import { connectPostgres } from '#shared/database/postgres.ts';
import { prepare } from '#shared/database/prepared.ts';
import { replacedQueryMethods } from '#shared/database/prepared-query.ts';
import { type AppId, newTenantId, newUuid, type RepositoryId, type UserId } from '#shared/ids.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/database/test-database.ts';

const add = prepare<{ one: number; other: number }, { sum: number }>('test-add', (db, value) =>
  sql<{ sum: number }>`select ${value('one')}::int + ${value('other')}::int + ${1}::int as sum`.compile(db),
);

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database?.close());

describe('a prepared statement', () => {
  it('takes its values each time, and keeps those it was written with', async () => {
    expect(await add.execute(database.db, { one: 1, other: 2 })).toEqual([{ sum: 4 }]);
    expect(await add.execute(database.db, { one: 30, other: 10 })).toEqual([{ sum: 41 }]);
  });

  it('is planned once a connection, under its name, in transactions too', async () => {
    await database.db.transaction().execute(async (trx) => {
      for (let time = 1; time <= 3; time += 1) await add.execute(trx, { one: time, other: 0 });
      const known = await sql<{ uses: number }>`
        select generic_plans + custom_plans as uses from pg_prepared_statements where name = 'test-add'`.execute(trx);
      expect(known.rows).toHaveLength(1);
      expect(known.rows[0]?.uses).toBeGreaterThanOrEqual(3);
    });
  });
});

describe('the rows of a prepared statement', () => {
  const divide = prepare<{ by: unknown }, { ratio: number; at: Date; counts: number[]; nothing: null }>(
    'test-divide',
    (db, value) =>
      sql<never>`select 10 / ${value('by')}::int as ratio, to_timestamp(0) as at, array[1, 2] as counts, null as nothing`.compile(
        db,
      ),
  );
  const row = { at: new Date(0), counts: [1, 2], nothing: null };

  /** Runs on one connection; with the number of descriptions that the server has sent. */
  async function onOneConnection(run: (db: TestDatabase['db'], described: () => number) => Promise<void>): Promise<void> {
    const { db, pool, close } = connectPostgres(database.url, () => undefined, 1);
    let count = 0;
    pool.on('connect', (client) => {
      const { connection } = client as unknown as { connection: NodeJS.EventEmitter };
      connection.on('rowDescription', () => (count += 1));
    });
    await run(db, () => count).finally(close);
  }

  it('are described once a connection, and parsed alike each time', async () => {
    await onOneConnection(async (db, described) => {
      for (const by of [1, 2, 5]) expect(await divide.execute(db, { by })).toEqual([{ ratio: 10 / by, ...row }]);
      expect(described()).toBe(1);
    });
  });

  it('are parsed after calls that failed, before and after they were described', async () => {
    await onOneConnection(async (db) => {
      await expect(divide.execute(db, { by: 'no number' })).rejects.toThrow('invalid input syntax');
      await expect(divide.execute(db, { by: 0 })).rejects.toThrow('division by zero');
      expect(await divide.execute(db, { by: 2 })).toEqual([{ ratio: 5, ...row }]);
      await expect(divide.execute(db, { by: 0 })).rejects.toThrow('division by zero');
      expect(await divide.execute(db, { by: 5 })).toEqual([{ ratio: 2, ...row }]);
    });
  });

  it('are never parsed by an old description: PostgreSQL refuses once a column has another type', async () => {
    const read = prepare<object, { value: unknown }>('test-changed', (db) => sql<never>`select value from changed`.compile(db));
    await onOneConnection(async (db) => {
      await sql`create table changed as select 1 as value`.execute(db);
      expect(await read.execute(db, {})).toEqual([{ value: 1 }]);
      await sql`alter table changed alter column value type text`.execute(db);
      await expect(read.execute(db, {})).rejects.toThrow('cached plan must not change result type');
    });
  });

  it('can be described so: the query of pg has the methods that are replaced', () => {
    for (const method of replacedQueryMethods) expect(pg.Query.prototype).toHaveProperty(method, expect.any(Function));
  });
});

it('apps are read on connections that were open before a migration added a column to them', async () => {
  const { db } = database;
  const tenantId = newTenantId();
  const id = newUuid<AppId>();
  await db.insertInto('tenants').values({ id: tenantId, name: 'team' }).execute();
  await db
    .insertInto('apps')
    .values({
      id,
      tenant_id: tenantId,
      name: 'hello',
      git_url: null,
      branch: 'main',
      repository_id: id as string as RepositoryId,
      parent_app_id: null,
      preview_branch: null,
      current_release_id: null,
      created_by: newUuid<UserId>(),
      deleted_at: null,
    })
    .execute();
  const page = { tenantId, deletedSince: undefined, before: undefined, limit: 5 };
  // On the connection that will read again: a pool of one.
  await db.connection().execute(async (connection) => {
    const read = async () => [
      await findApp(connection, id),
      await findApp(connection, 'hello'),
      ...(await listApps(connection, page)),
    ];
    const before = await read();
    await sql`alter table apps add column note text`.execute(connection);
    expect(await read()).toEqual(before);
    expect(before.map((row) => row?.id)).toEqual([id, id, id]);
  });
});
