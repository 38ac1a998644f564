const bars = '▁▂▃▄▅▆▇█';

/**
 * Values over time as a row of bars, the highest as high as can be; a space stands for a time without a value.
 * @param points time in milliseconds and value, in the order of time
 * @param columns at most; several steps share one when there are more
 * @param merge what of several values a column shows
 */
export function sparkline(
  points: readonly (readonly [ts: number, value: number])[],
  stepMilliseconds: number,
  columns: number,
  merge: 'sum' | 'highest',
): string {
  const [first, last] = [points[0]?.[0] ?? 0, points.at(-1)?.[0] ?? 0];
  const steps = Math.round((last - first) / stepMilliseconds) + 1;
  const stepsAColumn = Math.ceil(steps / columns);
  const values: (number | undefined)[] = new Array<undefined>(Math.ceil(steps / stepsAColumn)).fill(undefined);
  for (const [ts, value] of points) {
    const column = Math.floor(Math.round((ts - first) / stepMilliseconds) / stepsAColumn);
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
