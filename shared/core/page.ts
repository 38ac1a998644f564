import type { Keyset, KeysetPage } from '#shared/database/keyset.ts';
import { AppError } from '#shared/errors.ts';

/** Which page of a newest-first list is asked for. */
export interface PageQuery {
  /** 1 to 200; the entry point has checked it. */
  limit: number;
  /** `nextCursor` of the page before; left out for the first page. */
  cursor?: string;
}

/** One page of a list. */
export interface Page<Item> {
  items: readonly Item[];
  /** Null on the last page. */
  nextCursor: string | null;
}

/** The opaque text that a client sends to get the page after `position`. */
export function encodeCursor(position: Keyset): string {
  return btoa(`${position.createdAt.getTime()}~${position.id}`).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

/** @throws AppError `validation_failed` for anything that `encodeCursor` did not make */
export function decodeCursor(cursor: string): Keyset {
  const match = /^(\d{1,15})~([0-9a-f-]{36})$/.exec(decodeBase64Url(cursor));
  if (match?.[1] === undefined || match[2] === undefined) {
    throw new AppError('validation_failed', 'The `cursor` is not valid. Use `next_cursor` of the page before.', {
      details: [{ path: 'cursor', message: 'is not a cursor of this list' }],
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

/**
 * The rows to read for a page: one more than asked for, which says whether there is a next page.
 * @throws AppError `validation_failed` for a cursor that `encodeCursor` did not make
 */
export function toKeysetPage({ limit, cursor }: PageQuery): KeysetPage {
  return { before: cursor === undefined ? undefined : decodeCursor(cursor), limit: limit + 1 };
}

/**
 * A page of items from the rows that were read for it.
 * @param rows newest first, read with `toKeysetPage`
 * @param limit the number of items asked for
 */
export function toPage<Row extends { created_at: Date; id: string }, Item>(
  rows: readonly Row[],
  limit: number,
  toItem: (row: Row) => Item,
): Page<Item> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const hasNext = rows.length > limit && last !== undefined;
  return {
    items: shown.map(toItem),
    nextCursor: hasNext ? encodeCursor({ createdAt: last.created_at, id: last.id }) : null,
  };
}
