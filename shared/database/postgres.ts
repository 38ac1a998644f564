import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import type { Database } from '#shared/database/schema.ts';

/** bigint: byte counts and milliseconds stay below 2^53. */
const int8 = 20;

export interface PostgresConnection {
  db: Kysely<Database>;
  pool: pg.Pool;
  /** Ends every connection. */
  close(): Promise<void>;
}

const getTypeParser = ((oid: number, format?: 'text' | 'binary'): unknown =>
  oid === int8 && format !== 'binary' ? Number : pg.types.getTypeParser(oid, format as 'text')) as typeof pg.types.getTypeParser;

/**
 * @param url `postgres://user:password@host:port/database`
 * @param onIdleError the server went away under an idle connection; the pool replaces it by itself
 */
export function connectPostgres(url: string, onIdleError: (error: Error) => void, connections = 10): PostgresConnection {
  const pool = new pg.Pool({
    connectionString: url,
    max: connections,
    types: { getTypeParser },
  });
  pool.on('error', onIdleError);
  // A client that is checked out reports its end here, and to its query: without a listener it would end the process.
  pool.on('connect', (client) => client.on('error', onIdleError));
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });
  return {
    db,
    pool,
    close: async () => {
      // From here on it is no news that the server ends a connection.
      pool.off('error', onIdleError).on('error', () => undefined);
      await db.destroy();
      // Kysely ends a pool only if it ever ran a query on it.
      if (!pool.ending) await pool.end();
    },
  };
}
