import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'kysely';
import type { Db } from '#shared/database/db.ts';

/**
 * Writes `facts.json`, and `tables/` with the rows of each table, beside the repositories and the log of the control planes.
 * @param facts of the round in which something was wrong
 */
export async function dumpState(db: Db, directory: string, facts: object): Promise<void> {
  const tables = join(directory, 'tables');
  await mkdir(tables, { recursive: true });
  await writeFile(join(directory, 'facts.json'), JSON.stringify(facts, null, 2));
  const { rows } = await sql<{ schema: string; name: string }>`
    select table_schema as schema, table_name as name from information_schema.tables
    where table_schema in ('public', 'graphile_worker') and table_type = 'BASE TABLE'`.execute(db);
  for (const { schema, name } of rows) {
    const table = await sql<{ row: unknown }>`select to_json(t) as row from ${sql.table(`${schema}.${name}`)} t`.execute(db);
    const lines = table.rows.map(({ row }) => `${JSON.stringify(row)}\n`);
    await writeFile(join(tables, `${schema}.${name}.jsonl`), lines.join(''));
  }
}
