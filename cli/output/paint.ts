import { styleText } from 'node:util';

/** Styles that the command line uses. */
export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan' | 'magenta' | 'blue';

/** Adds a style to text, or returns the text as it is where no style is wanted. */
export type Paint = (style: Style, text: string) => string;

/** As much of a writable stream as the command line uses. */
export interface OutputStream {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  write(text: string | Uint8Array): unknown;
}

/** Styles for this stream: none unless it is a terminal, NO_COLOR (no-color.org) is unset or empty, and TERM is not `dumb`. */
export function painter(stream: OutputStream, env: Readonly<Record<string, string | undefined>>): Paint {
  const plain = stream.isTTY !== true || (env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb';
  return (style, text) => (plain ? text : styleText(style, text, { validateStream: false }));
}
