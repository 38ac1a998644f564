import type { PostgresClient } from '#shared/database/postgres-client.ts';
import type { Log } from '#shared/log.ts';

/** From this share of its limit on nobody connects to a database: sessions can turn read-only off, to delete what is too much. */
const closedFromShare = 1.2;

interface DatabaseSize {
  name: string;
  bytes: string;
  read_only: boolean;
  closed: boolean;
}

/**
 * Makes databases of apps read-only that are larger than they may be, and writable again when they are not. PostgreSQL has no limit of its
 * own, so sizes are measured from time to time. A database that grows on is closed.
 */
export async function limitDatabaseSizes(client: PostgresClient, longestBytes: number, log: Log): Promise<void> {
  const { rows } = await client.query<DatabaseSize>(
    `select datname as name, pg_database_size(pg_database.oid) as bytes, rolconnlimit = 0 as closed,
            coalesce('default_transaction_read_only=on' = any(rolconfig), false) as read_only
     from pg_database join pg_roles on rolname = datname where rolcanlogin`,
  );
  for (const { name, bytes, read_only, closed } of rows) {
    const role = client.escapeIdentifier(name);
    const size = Number(bytes);
    if (size > longestBytes * closedFromShare && !closed) {
      log.warn('the database of an app grew on although it is too large; it is closed', { database: name, bytes: size });
      await client.query(`alter role ${role} connection limit 0`);
      await endSessions(client, name);
    }
    if (size > longestBytes && !read_only) {
      log.warn('the database of an app is too large; it is read-only now', { database: name, bytes: size });
      await client.query(`alter role ${role} set default_transaction_read_only = on`);
      await endSessions(client, name);
    }
    if (size <= longestBytes && read_only) await client.query(`alter role ${role} reset default_transaction_read_only`);
  }
}

/** The next session has the new settings. */
async function endSessions(client: PostgresClient, database: string): Promise<void> {
  await client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and usename = $1', [database]);
}
