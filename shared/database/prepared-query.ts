import pg from 'pg';

/** A statement under its name, with the values of this time. */
export interface NamedStatement {
  name: string;
  text: string;
  values: unknown;
}

/** What pg does not document; see docs/private-internals.md. */
interface Connection {
  describe(portal: unknown): void;
}

/** How the rows of a statement are parsed. */
interface ParsedDescription {
  fields: unknown;
  _parsers: unknown;
  _prebuiltEmptyResultObject: unknown;
}

interface QueryInternals {
  readonly name: string;
  readonly _result: ParsedDescription;
  _accumulateRows: boolean;
  prepare(connection: Connection): void;
  handleRowDescription(message: unknown): void;
}

/** What is known of a connection. */
interface Described {
  /** The same connection, but it asks for no description. */
  readonly silent: Connection;
  /** By the name of the statement. */
  readonly rows: Map<string, ParsedDescription>;
}

/** Methods of pg's query that {@link PreparedQuery} replaces: without one of them every call would ask for the description. */
export const replacedQueryMethods = ['prepare', 'handleRowDescription'] as const;

const inherited = pg.Query.prototype as unknown as QueryInternals;
const connections = new WeakMap<Connection, Described>();

/**
 * pg's query for a prepared statement. It asks for the description of its rows once a connection. pg asks each time, and parses as many
 * bytes of description as of a row. PostgreSQL refuses to execute a prepared statement whose columns have changed, so the description
 * is right for as long as the statement is there.
 */
class PreparedQuery extends pg.Query {
  #rows: Described['rows'] | undefined;

  prepare(connection: Connection): void {
    const query = this as unknown as QueryInternals;
    const described = describedOf(connection);
    this.#rows = described.rows;
    const known = described.rows.get(query.name);
    if (known === undefined) return inherited.prepare.call(query, connection);
    Object.assign(query._result, known);
    query._accumulateRows = true;
    inherited.prepare.call(query, described.silent);
  }

  handleRowDescription(message: unknown): void {
    const query = this as unknown as QueryInternals;
    inherited.handleRowDescription.call(query, message);
    const { fields, _parsers, _prebuiltEmptyResultObject } = query._result;
    this.#rows?.set(query.name, { fields, _parsers, _prebuiltEmptyResultObject });
  }
}

function describedOf(connection: Connection): Described {
  const known = connections.get(connection);
  if (known !== undefined) return known;
  const silent = Object.create(connection, { describe: { value: () => undefined } }) as Connection;
  const described = { silent, rows: new Map<string, ParsedDescription>() };
  connections.set(connection, described);
  return described;
}

/** Runs a prepared statement by `query` of a client. */
export function runPrepared(query: (prepared: pg.Query) => unknown, statement: NamedStatement): Promise<pg.QueryResult> {
  return new Promise((resolve, reject) => {
    const done = (error: Error | undefined | null, result: unknown): void =>
      error === undefined || error === null ? resolve(result as pg.QueryResult) : reject(error);
    query(new PreparedQuery(statement as pg.QueryConfig, done));
  });
}
