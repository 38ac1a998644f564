import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type RawBuilder,
  sql,
} from 'kysely';
import type { Db, Tables } from '#shared/database/db.ts';

/** A statement that is asked so often that compiling and planning it each time would cost more than answering it. */
export interface PreparedStatement<Values, Row> {
  execute(db: Db, values: Values): Promise<Row[]>;
}

/** Stands for a value while a statement is compiled. */
class Slot {
  readonly name: PropertyKey;

  constructor(name: PropertyKey) {
    this.name = name;
  }
}

const names = new Map<string, string>();
const compiler: Db = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
});

/**
 * Compiles a statement once; PostgreSQL parses and plans it once a connection (see postgres.ts). It names its columns: with
 * `*` it would fail on open connections as soon as a migration adds one.
 * @param name unique, shown in PostgreSQL's pg_prepared_statements
 */
export function prepare<Values extends object, Row>(
  name: string,
  build: (db: Db, value: <Name extends keyof Values>(name: Name) => RawBuilder<Values[Name]>) => CompiledQuery<Row>,
): PreparedStatement<Values, Row> {
  const compiled = build(compiler, (slot) => sql`${new Slot(slot)}`);
  names.set(compiled.sql, name);
  return {
    async execute(db, values) {
      const parameters = compiled.parameters.map((each) => (each instanceof Slot ? values[each.name as keyof Values] : each));
      const { rows } = await db.executeQuery<Row>({ ...compiled, parameters });
      return rows;
    },
  };
}

/** Undefined for what was not prepared. */
export function nameOfStatement(text: string): string | undefined {
  return names.get(text);
}
