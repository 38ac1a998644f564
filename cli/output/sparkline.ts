const bars = '▁▂▃▄▅▆▇█';

/**
 * Draws values over time as a row of bars. The highest value has the highest bar, a space is a time without a value.
 * @param points time in milliseconds and value, oldest first
 * @param columns maximum width: a column can stand for several steps
 * @param merge how a column combines the values of several steps
 */
export function sparkline(
  points: readonly (readonly [ts: number, value: number])[],
  stepMilliseconds: number,
  columns: number,
  merge: 'sum' | 'highest',
): string {
  const [first, last] = [points[0]?.[0] ?? 0, points.at(-1)?.[0] ?? 0];
  const steps = Math.round((last - first) / stepMilliseconds) + 1;
  const stepsPerColumn = Math.ceil(steps / columns);
  const values: (number | undefined)[] = new Array<undefined>(Math.ceil(steps / stepsPerColumn)).fill(undefined);
  for (const [ts, value] of points) {
    const column = Math.floor(Math.round((ts - first) / stepMilliseconds) / stepsPerColumn);
    const before = values[column];
    values[column] = before === undefined ? value : merge === 'sum' ? before + value : Math.max(before, value);
  }
  const highest = Math.max(...values.map((value) => value ?? 0));
  return values.map((value) => (value === undefined ? ' ' : barOf(value, highest))).join('');
}

function barOf(value: number, highest: number): string {
  const height = highest <= 0 ? 0 : Math.round((value / highest) * (bars.length - 1));
  return bars[Math.max(height, 0)] ?? ' ';
}
