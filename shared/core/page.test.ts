import { describe, expect, it } from 'vitest';
import { decodeCursor, encodeCursor, toPage } from '#shared/core/page.ts';

const position = { createdAt: new Date('2026-05-01T12:00:00.123Z'), id: '123e4567-e89b-42d3-a456-426614174000' };

describe('cursors', () => {
  it('lead back to the position they were made of', () => {
    expect(decodeCursor(encodeCursor(position))).toEqual(position);
  });

  it.each(['', 'x', '!!!', encodeCursor(position).slice(2), `${encodeCursor(position)}AAAA`, 'ICAg', "' or 1=1"])(
    'of somebody else are refused: %j',
    (cursor) => {
      expect(() => decodeCursor(cursor)).toThrow(expect.objectContaining({ code: 'validation_failed' }));
    },
  );
});

describe('toPage', () => {
  const rows = [1, 2, 3].map((number) => ({ number, ...position }));
  const page = (limit: number) =>
    toPage(
      rows,
      limit,
      (row) => row,
      (row) => row.number,
    );

  it('gives a cursor only when there is more', () => {
    expect(page(2)).toEqual({ items: [1, 2], nextCursor: encodeCursor(position) });
    expect(page(3)).toEqual({ items: [1, 2, 3], nextCursor: null });
  });
});
