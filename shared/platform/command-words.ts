/** Characters that no shell treats specially anywhere in a word. */
const plainWord = /^[A-Za-z0-9_@%+:,./-]+$/;

/** A command line of which a POSIX shell makes exactly these words. */
export function joinWords(words: readonly string[]): string {
  return words.map((word) => (plainWord.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(' ');
}

/** What may be a program, a path or an argument in a command line of any shell: the pieces between blanks, quotes, operators and `=`. */
export function splitRoughly(command: string): readonly string[] {
  return command.split(/[\s;&|()'"=]+/);
}

/**
 * The words of a command line that needs no shell: programs of images without a shell can be run by it.
 * @returns undefined where a shell would do more than to split it into words and to remove quotes
 */
export function splitWords(command: string): readonly string[] | undefined {
  const words: string[] = [];
  let rest = command.trim();
  let word: string | undefined;
  while (rest !== '') {
    const [piece = '', plain, single, double, escaped, blank] =
      /^(?:([A-Za-z0-9_@%+:,./=-]+)|'([^']*)'|"([^"\\$`!]*)"|\\([^\n])|([ \t]+))/.exec(rest) ?? [];
    if (piece === '') return undefined;
    rest = rest.slice(piece.length);
    if (blank !== undefined) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? '') + (plain ?? single ?? double ?? escaped ?? '');
  }
  if (word !== undefined) words.push(word);
  // NAME=value before the program is a variable, and words such as "cd" and "exec" are commands of the shell itself.
  const [program] = words;
  return program === undefined || program.includes('=') || shellWords.has(program) ? undefined : words;
}

const shellWords = new Set([
  '.', ':', '{', '!', 'alias', 'bg', 'case', 'cd', 'command', 'echo', 'eval', 'exec', 'exit', 'export', 'fg', 'for', 'hash', 'if', 'jobs',
  'read', 'set', 'source', 'times', 'trap', 'type', 'ulimit', 'umask', 'unset', 'until', 'wait', 'while',
]); // biome-ignore format: a list of words
