import { describe, expect, it } from 'vitest';
import { painter } from '#cli/output/paint.ts';
import { keyValues, table } from '#cli/output/table.ts';

describe('table', () => {
  it('aligns columns by their visible width, with colours and without, and ends lines without blanks', () => {
    const paint = painter({ isTTY: true, write: () => true }, {});
    const painted = table([
      [paint('red', 'failed'), 'x'],
      ['ok', 'longer'],
      ['é', ''],
    ]);
    expect(painted).toBe(`${paint('red', 'failed')}  x\nok      longer\né\n`);
  });

  it('is empty without rows', () => {
    expect(table([])).toBe('');
  });
});

it('pairs without a value are left out, empty values stay', () => {
  expect(
    keyValues([
      ['Name', 'hello'],
      ['Source', null],
      ['Preview', undefined],
      ['Empty', ''],
    ]),
  ).toBe('Name:   hello\nEmpty:\n');
});
