import { describe, expect, it } from 'vitest';
import { decodeCursor, encodeCursor, toPage } from '#shared/core/page.ts';

const position = { createdAt: new Date('2026-05-01T12:00:00.123Z'), id: '123e4567-e89b-42d3-a456-426614174000' };

describe('cursors', () => {
  it('decode to the position they were made from', () => {
    expect(decodeCursor(encodeCursor(position))).toEqual(position);
  });

  it.each(['', 'x', '!!!', encodeCursor(position).slice(2), `${encodeCursor(position)}AAAA`, 'ICAg', "' or 1=1"])(
    'that were not made here are refused: %j',
    (cursor) => {
      expect(() => decodeCursor(cursor)).toThrow(expect.objectContaining({ code: 'validation_failed' }));
    },
  );
});

describe('toPage', () => {
  const rows = [1, 2, 3].map((number) => ({ number, created_at: position.createdAt, id: position.id }));
  const page = (limit: number) => toPage(rows, limit, (row) => row.number);

  it('has a cursor only when there is a next page', () => {
    expect(page(2)).toEqual({ items: [1, 2], nextCursor: encodeCursor(position) });
    expect(page(3)).toEqual({ items: [1, 2, 3], nextCursor: null });
  });
});
