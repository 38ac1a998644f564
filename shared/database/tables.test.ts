import { globSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { createTestDatabase } from '#test/support/database/test-database.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const sources = globSync('{api,deploy,gateway,shared,sshd}/**/*.ts', { cwd: root })
  .filter((path) => !/\.test\.ts$|\/(testing|contract|migrations)\//.test(path))
  .map((path) => ({ path, text: readFileSync(`${root}/${path}`, 'utf8') }));

/** Name and file of each table that a file declares in `Tables`. */
const declared = sources.flatMap(({ path, text }) => {
  const [, block = ''] =
    /declare module '#shared\/database\/db\.ts' \{\n {2}interface Tables \{\n(.*?)\n {2}\}\n\}/s.exec(text) ?? [];
  return [...block.matchAll(/^ {4}(\w+): \{/gm)].map(([, table]) => ({ table, path }));
});

/** Name and file of each table that a file inserts into, updates or deletes from. */
const written = sources.flatMap(({ path, text }) => {
  const builders = text.matchAll(/\.(?:insertInto|updateTable|deleteFrom)\('(\w+)'\)/g);
  const statements = text.matchAll(/\b(?:insert into|delete from|(?<!for |do )update) (\w+)\s/g);
  return [...builders, ...statements].map(([, table]) => ({ table, path }));
});

it('every table of the migrated database is declared once', async () => {
  const database = await createTestDatabase();
  try {
    const { rows } = await sql<{ name: string }>`
      select table_name as name from information_schema.tables
      where table_schema = 'public' and table_name not like 'kysely_%'`.execute(database.db);
    expect(declared).toHaveLength(rows.length);
    expect(new Set(declared.map(({ table }) => table))).toEqual(new Set(rows.map(({ name }) => name)));
  } finally {
    await database.close();
  }
});

it('a table is written only beside its declaration', () => {
  const home = new Map(declared.map(({ table, path }) => [table, dirname(path)]));
  expect(written.length).toBeGreaterThan(50);
  expect(written.filter(({ table, path }) => home.get(table) !== dirname(path))).toEqual([]);
});
