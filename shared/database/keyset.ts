import { type RawBuilder, sql } from 'kysely';

/** A row's position in a list that is ordered by `created_at` and then `id`: inserts never shift it. */
export interface Keyset {
  createdAt: Date;
  id: string;
}

/** What a store needs to read one page of a newest-first list. */
export interface KeysetPage {
  /** The last row of the page before; undefined for the first page. */
  before: Keyset | undefined;
  /** Rows to read. */
  limit: number;
}

/**
 * The condition that a newest-first list continues after `before`; always true on the first page.
 * @param table qualifies the columns `created_at` and `id` where a join makes them ambiguous
 * @param idType the type of the column `id`
 */
export function keysetBefore(before: Keyset | undefined, table?: string, idType: 'uuid' | 'text' = 'uuid'): RawBuilder<boolean> {
  if (before === undefined) return sql<boolean>`true`;
  const column = (name: string) => sql.ref(table === undefined ? name : `${table}.${name}`);
  return sql<boolean>`(${column('created_at')}, ${column('id')}) < (${before.createdAt}, ${before.id}::${sql.raw(idType)})`;
}
