import { expect, test } from 'vitest';
import type { TenantId } from '#shared/ids.ts';
import { createTestDatabase } from '#test/support/database/test-database.ts';

test('each test database is migrated, empty and its own', async () => {
  const [one, other] = await Promise.all([createTestDatabase(), createTestDatabase()]);
  try {
    await one.db
      .insertInto('tenants')
      .values({ id: 'abcd1234' as TenantId, name: 'one' })
      .execute();
    expect(await one.db.selectFrom('tenants').select('name').execute()).toEqual([{ name: 'one' }]);
    expect(await other.db.selectFrom('tenants').select('name').execute()).toEqual([]);
  } finally {
    await Promise.all([one.close(), other.close()]);
  }
});

test('closing a test database drops it, also while somebody else is connected', async () => {
  const [kept, closed] = await Promise.all([createTestDatabase(), createTestDatabase()]);
  try {
    const bystander = await closed.pool.connect();
    bystander.on('error', () => undefined);
    const closing = closed.close();
    bystander.release();
    await closing;
    const { rows } = await kept.pool.query('select 1 from pg_database where datname = $1', [
      new URL(closed.url).pathname.slice(1),
    ]);
    expect(rows).toEqual([]);
  } finally {
    await kept.close();
  }
});
