import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { connectPostgres, type PostgresConnection } from '#shared/database/postgres.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/database/test-database.ts';
import { openPostgresProxy, type PostgresProxy } from './postgres-proxy.ts';

let database: TestDatabase;
let proxy: PostgresProxy;
let client: PostgresConnection;
beforeAll(async () => {
  database = await createTestDatabase();
  await database.pool.query('create table words (word text)');
  proxy = await openPostgresProxy(new URL(inject('postgresUrl')));
  client = connectPostgres(proxy.proxyUrl(new URL(database.url)).href, () => undefined, 1);
});
afterAll(async () => {
  await client.close();
  await proxy.close();
  await database.close();
});

/** In a transaction, or by itself. */
async function write(word: string, kind: 'COMMIT' | 'statement'): Promise<void> {
  if (kind === 'statement') return void (await client.pool.query('insert into words values ($1)', [word]));
  const connection = await client.pool.connect();
  try {
    for (const statement of ['begin', `insert into words values ('${word}')`, 'commit']) await connection.query(statement);
    connection.release();
  } catch (error) {
    connection.release(true);
    throw error;
  }
}

async function count(word: string): Promise<number> {
  return (await database.pool.query('select from words where word = $1', [word])).rowCount ?? 0;
}

describe('a commit through the proxy', () => {
  it('passes, however long it is', async () => {
    const long = 'word'.repeat(500_000);
    await write(long, 'statement');
    await write('short', 'COMMIT');
    expect([await count(long), await count('short')]).toEqual([1, 1]);
  });

  for (const kind of ['COMMIT', 'statement'] as const) {
    it(`as ${kind}: has no effect when it is cut before it was sent, and takes effect otherwise; the client gets no answer`, async () => {
      for (const moment of ['unsent', 'sent', 'answered'] as const) {
        let left = 1;
        const seen: string[] = [];
        proxy.decideCut = (decided) => {
          seen.push(decided);
          return left-- > 0 ? moment : undefined;
        };
        const word = `${kind} ${moment}`;
        await expect(write(word, kind)).rejects.toThrow(/terminated|ECONNRESET/);
        expect(seen).toEqual([kind]);
        if (moment === 'unsent') expect(await count(word)).toBe(0);
        else await expect.poll(() => count(word)).toBe(1);
        proxy.decideCut = () => undefined;
      }
    });
  }

  it('fails with all others when every connection is cut', async () => {
    const waiting = client.pool.query('select pg_sleep(60)');
    waiting.catch(() => undefined);
    await expect.poll(() => proxy.cutAll()).toBe(1);
    await expect(waiting).rejects.toThrow(/terminated|ECONNRESET/);
  });
});
