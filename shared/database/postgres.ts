import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import type { Tables } from '#shared/database/db.ts';
import { type DatabaseAuthentication, PostgresClient } from '#shared/database/postgres-client.ts';
import { nameOfStatement } from '#shared/database/prepared.ts';
import { runPrepared } from '#shared/database/prepared-query.ts';

/** bigint: byte counts and milliseconds stay below 2^53. */
const int8 = 20;

export interface PostgresConnection {
  db: Kysely<Tables>;
  pool: pg.Pool;
  /** Ends every connection. */
  close(): Promise<void>;
}

const getTypeParser = ((oid: number, format?: 'text' | 'binary'): unknown =>
  oid === int8 && format !== 'binary' ? Number : pg.types.getTypeParser(oid, format as 'text')) as typeof pg.types.getTypeParser;

/**
 * @param url `postgres://user:password@host:port/database`; of a unix socket `postgres://user:password@localhost:port/database?host=/directory`
 * @param onIdleError the server went away under an idle connection; the pool replaces it by itself
 * @param authentication by default SCRAM only
 */
export function connectPostgres(
  url: string,
  onIdleError: (error: Error) => void,
  connections = 10,
  authentication: DatabaseAuthentication = 'scram',
): PostgresConnection {
  const config = { connectionString: url, max: connections, types: { getTypeParser }, authentication };
  const pool = new pg.Pool({ ...config, Client: PostgresClient });
  pool.on('error', onIdleError);
  // A client that is checked out reports its end here, and to its query: without a listener it would end the process.
  pool.on('connect', (client) => client.on('error', onIdleError));
  pool.on('connect', namePreparedStatements);
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
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

/** Kysely hands on text and values alone; under a name a connection parses, plans and describes a statement once. */
function namePreparedStatements(client: pg.PoolClient): void {
  const query = client.query.bind(client) as (...args: unknown[]) => unknown;
  const queryByName = (statement: unknown, values?: unknown, ...rest: unknown[]): unknown => {
    if (typeof statement !== 'string') return query(statement, values, ...rest);
    const name = nameOfStatement(statement);
    return name === undefined ? query(statement, values, ...rest) : runPrepared(query, { name, text: statement, values });
  };
  client.query = queryByName as typeof client.query;
}
