import { stripVTControlCharacters } from 'node:util';

/** Rows with aligned columns, two spaces apart, a line break after each. Cells may have styles. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, visibleWidth(cell));
    });
  }
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - visibleWidth(cell)))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

/** One `name: value` per line, values aligned. Pairs without a value are left out. */
export function keyValues(pairs: readonly (readonly [name: string, value: string | null | undefined])[]): string {
  const present = pairs.flatMap(([name, value]) => (value === null || value === undefined ? [] : [[`${name}:`, value]]));
  return table(present);
}

function visibleWidth(cell: string): number {
  return [...stripVTControlCharacters(cell)].length;
}
