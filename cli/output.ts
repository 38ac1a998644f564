import { stripVTControlCharacters, styleText } from 'node:util';

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan' | 'magenta' | 'blue';
export type Paint = (style: Style, text: string) => string;

/** What `paas` writes to: data to `out`, talk to `err`. */
export interface OutputStream {
  readonly isTTY?: boolean | undefined;
  write(text: string): unknown;
}

/** Colours for this stream: none unless it is a terminal and NO_COLOR is unset. */
export function painter(stream: OutputStream, env: Readonly<Record<string, string | undefined>>): Paint {
  const plain = stream.isTTY !== true || (env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb';
  return (style, text) => (plain ? text : styleText(style, text, { validateStream: false }));
}

/** Makes text from elsewhere safe for one line of a terminal: no escape sequences, no line breaks. */
export function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this takes out.
  return stripVTControlCharacters(text).replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ');
}

/**
 * A line of a log as a terminal may show it: its colours, ended with it, but nothing that moves the cursor, clears the
 * screen or talks to the terminal.
 */
export function logLine(text: string): string {
  const coloured = text.replace(controlSequence, (found) => (/^\u001b\[[\d;:]*m$/.test(found) ? found : ''));
  return coloured.includes('\u001b') ? `${coloured}\u001b[0m` : coloured;
}

const controlSequence = new RegExp(
  [
    '\\u001b[\\]PX^_].*?(?:\\u0007|\\u001b\\\\|$)', // strings, as a window's title: to their end
    '(?:\\u001b\\[|\\u009b)[0-?]*[ -/]*[@-~]', // colours, cursor, screen
    '\\u001b[ -/]*[0-~]', // other escapes
    '[\\u0000-\\u0008\\u000a-\\u001f\\u007f-\\u009f]', // single control characters but the tab
  ].join('|'),
  'gs',
);

/** Columns as wide as their widest cell, two spaces apart, nothing after the last one. Cells may be painted. */
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

/** One `name: value` a line, values aligned. Pairs without a value are left out. */
export function keyValues(pairs: readonly (readonly [name: string, value: string | null | undefined])[]): string {
  const present = pairs.flatMap(([name, value]) => (value === null || value === undefined ? [] : [[`${name}:`, value]]));
  return table(present);
}

function visibleWidth(cell: string): number {
  return [...stripVTControlCharacters(cell)].length;
}

/** '3 s ago', '2 h ago', '5 d ago'; in the future 'in 30 d'. */
export function relativeTime(time: string | Date, now: Date): string {
  const seconds = Math.round((now.getTime() - new Date(time).getTime()) / 1000);
  const amount = duration(Math.abs(seconds));
  if (seconds < 0) return `in ${amount}`;
  return seconds < 1 ? 'just now' : `${amount} ago`;
}

/** The largest unit that fits, rounded down: '59 s', '3 min', '23 h', '12 d'. */
export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}
