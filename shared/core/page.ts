import { type RawBuilder, sql } from 'kysely';
import { AppError } from '#shared/errors.ts';

export interface PageQuery {
  /** 1 to 200; the door has checked it. */
  limit: number;
  /** `nextCursor` of the page before. */
  cursor?: string;
}

export interface Page<Item> {
  items: readonly Item[];
  /** Null on the last page. */
  nextCursor: string | null;
}

/** Where a newest-first list goes on: keyset on (created_at, id), so inserts shift nothing. */
export interface Keyset {
  createdAt: Date;
  id: string;
}

export function encodeCursor(position: Keyset): string {
  return btoa(`${position.createdAt.getTime()}~${position.id}`).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

/** Throws `validation_failed` for anything `encodeCursor` did not make. */
export function decodeCursor(cursor: string): Keyset {
  const match = /^(\d{1,15})~([0-9a-f-]{36})$/.exec(decodeBase64Url(cursor));
  if (match?.[1] === undefined || match[2] === undefined) {
    throw new AppError('validation_failed', 'The cursor is not one of ours: use next_cursor of the page before.', {
      details: [{ path: 'cursor', message: 'unknown cursor' }],
    });
  }
  return { createdAt: new Date(Number(match[1])), id: match[2] };
}

function decodeBase64Url(text: string): string {
  try {
    return atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  } catch {
    return '';
  }
}

/** The condition that a newest-first list goes on after `cursor`; always true on the first page. */
export function keysetBefore(cursor: string | undefined, table?: string): RawBuilder<boolean> {
  if (cursor === undefined) return sql<boolean>`true`;
  const { createdAt, id } = decodeCursor(cursor);
  const column = (name: string) => sql.ref(table === undefined ? name : `${table}.${name}`);
  return sql<boolean>`(${column('created_at')}, ${column('id')}) < (${createdAt}, ${id}::uuid)`;
}

/** `rows` were read with `limit + 1`: one more than asked for tells that there is a next page. */
export function toPage<Row, Item>(
  rows: readonly Row[],
  limit: number,
  position: (row: Row) => Keyset,
  item: (row: Row) => Item,
): Page<Item> {
  const kept = rows.slice(0, limit);
  const last = kept.at(-1);
  return {
    items: kept.map(item),
    nextCursor: rows.length > limit && last !== undefined ? encodeCursor(position(last)) : null,
  };
}
