import type { AppResult } from '#test/apps/app-trial.ts';

const columns = ['app', 'detected', 'live', 'Cold s', 'Warm s', 'image MiB', 'last line'] as const;

/** One row of the table, in Markdown. */
export function resultLine(result: AppResult): string {
  const number = (value: number | undefined): string => value?.toFixed(1) ?? '–';
  const cells = [
    result.name,
    result.detected,
    result.passed ? 'yes' : 'NO',
    number(result.cold),
    number(result.warm),
    number(result.imageMebibytes),
    result.lastLine.replaceAll('|', '\\|').slice(0, 200),
  ];
  return `| ${cells.join(' | ')} |`;
}

/** All rows by name, and how many apps passed. */
export function printTable(results: readonly AppResult[]): void {
  console.log(`\n| ${columns.join(' | ')} |\n|${' --- |'.repeat(columns.length)}`);
  for (const result of [...results].sort((one, other) => one.name.localeCompare(other.name))) console.log(resultLine(result));
  const warm = results.filter(({ cold, warm }) => cold !== undefined && warm !== undefined && warm / cold <= 0.35);
  console.log(
    `\n${results.filter(({ passed }) => passed).length} of ${results.length} apps passed; ${warm.length} had Warm ≤ 0.35 of Cold.`,
  );
}
