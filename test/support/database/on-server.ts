import { PostgresClient } from '#shared/database/postgres-client.ts';

/** One statement that no transaction may hold, such as `create database`, on a connection of its own. */
export async function onServer(url: string, statement: string): Promise<void> {
  const client = new PostgresClient(url);
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
