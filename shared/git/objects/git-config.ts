/**
 * Reads a file in git's configuration syntax (git-config(1), "Syntax"), as git reads `.gitmodules`. Names are in lower case except
 * for their middle part (`submodule.Name.url`). Strings have one character for each byte. A variable without `=` has no value.
 *
 * @param variable called with each variable, in order
 * @returns false when there is a syntax error; it was called with the variables before that
 */
export function readGitConfig(file: Buffer, variable: (name: string, value: string | undefined) => void): boolean {
  const source = new ConfigSource(file);
  let section = '';
  for (;;) {
    const character = source.next();
    if (character === newline && source.ended) return true;
    if (isSpace(character)) continue;
    if (character === 0x23 || character === 0x3b) {
      source.skipLine();
    } else if (character === 0x5b) {
      const read = readSection(source);
      if (read === undefined) return false;
      section = read;
    } else {
      if (!isLetter(character)) return false;
      source.back();
      const name = section + source.takeWhile(isKeyCharacter).toLowerCase();
      const after = source.nextAfterBlanks();
      if (after !== newline && after !== 0x3d) return false;
      const value = after === newline ? undefined : readValue(source);
      if (after !== newline && value === undefined) return false;
      variable(name, value);
    }
  }
}

const newline = 0x0a;
const quote = 0x22;
const backslash = 0x5c;

/** The bytes of a file, one by one. A line may end in CR LF, and the last byte is followed by one more end of line. */
class ConfigSource {
  ended = false;
  readonly #data: Buffer;
  #at: number;
  #before = 0;
  /** The text that is being read, without quotes and escapes: never longer than the file. */
  readonly #taken: Buffer;
  #length = 0;

  constructor(data: Buffer) {
    this.#data = data;
    this.#at = data.toString('latin1', 0, 3) === '\xef\xbb\xbf' ? 3 : 0;
    this.#taken = Buffer.allocUnsafe(data.length + 1);
  }

  next(): number {
    this.#before = this.#at;
    if (this.#data[this.#at] === 0x0d && this.#data[this.#at + 1] === newline) this.#at++;
    const character = this.#data[this.#at++];
    this.ended = character === undefined;
    return character ?? newline;
  }

  back(): void {
    this.#at = this.#before;
  }

  nextAfterBlanks(): number {
    let character = this.next();
    while (character === 0x20 || character === 0x09) character = this.next();
    return character;
  }

  skipLine(): void {
    while (this.next() !== newline);
    this.back();
  }

  takeWhile(wanted: (character: number) => boolean): string {
    let character = this.next();
    for (; wanted(character) && !this.ended; character = this.next()) this.take(character);
    this.back();
    return this.taken();
  }

  get length(): number {
    return this.#length;
  }

  take(character: number): void {
    this.#taken[this.#length++] = character;
  }

  /** All text taken since the last call. */
  taken(): string {
    const text = this.#taken.toString('latin1', 0, this.#length);
    this.#length = 0;
    return text;
  }
}

/** Reads `name]` or `name "subsection"]`. Returns the prefix of its variables' names; undefined for a syntax error. */
function readSection(source: ConfigSource): string | undefined {
  const name = source.takeWhile((character) => isKeyCharacter(character) || character === 0x2e).toLowerCase();
  let character = source.next();
  if (character === 0x5d) return `${name}.`;
  if (!isSpace(character)) return undefined;
  while (isSpace(character) && character !== newline) character = source.next();
  if (character !== quote) return undefined;
  for (character = source.next(); character !== quote; character = source.next()) {
    if (character === backslash) character = source.next();
    if (character === newline) return undefined;
    source.take(character);
  }
  return source.next() === 0x5d ? `${name}.${source.taken()}.` : undefined;
}

const escapes = new Map([
  [0x74, 0x09],
  [0x62, 0x08],
  [0x6e, newline],
  [quote, quote],
  [backslash, backslash],
]);

/** Reads the text after `=`, to the end of the line; a backslash continues on the next line. Undefined for a syntax error. */
function readValue(source: ConfigSource): string | undefined {
  let spaces = 0;
  let quoted = false;
  for (;;) {
    const character = source.next();
    if (character === newline) return quoted ? undefined : source.taken();
    if (!quoted && isSpace(character)) {
      if (source.length > 0) spaces++;
      continue;
    }
    if (!quoted && (character === 0x23 || character === 0x3b)) {
      source.skipLine();
      continue;
    }
    for (; spaces > 0; spaces--) source.take(0x20);
    if (character === quote) {
      quoted = !quoted;
    } else if (character === backslash) {
      const escaped = source.next();
      const meant = escapes.get(escaped);
      if (meant !== undefined) source.take(meant);
      else if (escaped !== newline) return undefined;
    } else {
      source.take(character);
    }
  }
}

function isSpace(character: number): boolean {
  return character === 0x20 || character === 0x09 || character === newline || character === 0x0d;
}

function isLetter(character: number): boolean {
  return (character >= 0x41 && character <= 0x5a) || (character >= 0x61 && character <= 0x7a);
}

function isKeyCharacter(character: number): boolean {
  return isLetter(character) || (character >= 0x30 && character <= 0x39) || character === 0x2d;
}
