import { stripVTControlCharacters } from 'node:util';

/** Makes untrusted text safe for one line of a terminal: removes escape sequences, replaces line breaks by spaces. */
export function oneLine(text: string): string {
  return stripVTControlCharacters(text).replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ');
}

/**
 * Makes a line of a log safe for a terminal. Colours stay, and end with the line. Sequences that move the cursor, clear the
 * screen or control the terminal in another way are removed.
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
