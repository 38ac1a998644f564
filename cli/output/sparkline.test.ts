import { describe, expect, it } from 'vitest';
import { sparkline } from '#cli/output/sparkline.ts';

const everyTen = (...values: number[]) => values.map((value, index) => [index * 10, value] as const);

describe('a sparkline', () => {
  it('has one bar per step, the highest bar for the highest value', () => {
    expect(sparkline(everyTen(0, 1, 2, 7), 10, 40, 'highest')).toBe('▁▂▃█');
    expect(sparkline(everyTen(0, 0), 10, 40, 'highest')).toBe('▁▁');
  });

  it('leaves steps without a value empty', () => {
    expect(
      sparkline(
        [
          [0, 7],
          [30, 7],
        ],
        10,
        40,
        'highest',
      ),
    ).toBe('█  █');
  });

  it('combines steps when there are more than columns', () => {
    expect(sparkline(everyTen(1, 3, 0, 1), 10, 2, 'sum')).toBe('█▃');
    expect(sparkline(everyTen(1, 4, 2, 1), 10, 2, 'highest')).toBe('█▅');
    expect(sparkline(everyTen(...Array.from({ length: 361 }, () => 1)), 10, 48, 'highest').length).toBeLessThanOrEqual(48);
  });
});
