/** A longer line of output is split into several. */
export const longestLineBytes = 8 * 1024;

export interface SplitLine {
  text: string;
  /** Offset in the chunk, in bytes, at which the line and its newline end. */
  end: number;
}

const newline = 0x0a;
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });

/**
 * Splits a chunk into lines. Text behind the last newline is left for the next chunk, unless it is too long or the chunk is `final`.
 * Invalid UTF-8 becomes U+FFFD, and a carriage return before the newline is dropped.
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

/** @returns the last offset up to `at` at which a UTF-8 character starts */
function characterStart(chunk: Uint8Array, at: number): number {
  for (let back = 0; back < 4; back += 1) {
    if (((chunk[at - back] ?? 0) & 0xc0) !== 0x80) return at - back;
  }
  return at;
}

/** Splits a stream of chunks into lines. `line` is called with each; `end` reports a last line without newline. */
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
