/** Longest line of app output that is kept as one; longer ones go on in the next. */
export const longestLineBytes = 8 * 1024;

export interface SplitLine {
  text: string;
  /** Bytes from the start of the chunk to where the line, its newline included, ends. */
  end: number;
}

const newline = 0x0a;
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });

/**
 * The whole lines of a chunk; what follows the last newline is left for the next chunk, unless it is too long or `final`.
 * Invalid UTF-8 becomes U+FFFD, a carriage return before the newline is dropped.
 */
export function splitLines(chunk: Uint8Array, final: boolean): SplitLine[] {
  const lines: SplitLine[] = [];
  let start = 0;
  while (start < chunk.length) {
    const found = chunk.indexOf(newline, start);
    const stop = found === -1 ? chunk.length : found;
    if (stop - start > longestLineBytes) {
      const cut = characterStart(chunk, start + longestLineBytes);
      lines.push({ text: decoder.decode(chunk.subarray(start, cut)), end: cut });
      start = cut;
    } else if (found !== -1) {
      const textEnd = chunk[found - 1] === 0x0d && found > start ? found - 1 : found;
      lines.push({ text: decoder.decode(chunk.subarray(start, textEnd)), end: found + 1 });
      start = found + 1;
    } else {
      if (final) lines.push({ text: decoder.decode(chunk.subarray(start)), end: chunk.length });
      break;
    }
  }
  return lines;
}

/** The last position up to `at` where a UTF-8 character starts, so that none is cut in two. */
function characterStart(chunk: Uint8Array, at: number): number {
  for (let back = 0; back < 4; back += 1) {
    if (((chunk[at - back] ?? 0) & 0xc0) !== 0x80) return at - back;
  }
  return at;
}

/** Cuts a stream of chunks into lines. */
export function createLineSplitter(line: (text: string) => void): { push(chunk: Uint8Array): void; end(): void } {
  let rest: Uint8Array = new Uint8Array(0);
  const take = (chunk: Uint8Array, final: boolean): void => {
    const joined = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const lines = splitLines(joined, final);
    rest = joined.slice(lines.at(-1)?.end ?? 0);
    for (const { text } of lines) line(text);
  };
  return { push: (chunk) => take(chunk, false), end: () => take(new Uint8Array(0), true) };
}
