import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findApp, listApps } from '#shared/core/apps/apps-store.ts';
import { prepare } from '#shared/database/prepared.ts';
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
