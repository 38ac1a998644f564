/** Most that a search moves on at once; a byte of its table. */
const longestShift = 255;

/** Of two neighbouring UTF-16 units: an index into the tables. */
function blockAt(text: string, last: number): number {
  return (text.charCodeAt(last - 1) * 31 + text.charCodeAt(last)) & 0xffff;
}

/**
 * A function that replaces every occurrence of many literals in a text, in one pass: the time hardly depends on how many there are
 * (Wu and Manber, "A fast algorithm for multi-pattern searching", 1994). Of literals that overlap, the one that begins first is
 * replaced, of those the longest.
 * @param literals of two characters at least
 */
export function createLiteralReplacer(literals: readonly string[], replacement: string): (text: string) => string {
  const sorted = [...new Set(literals)].toSorted((one, other) => other.length - one.length);
  const shortest = sorted.at(-1);
  if (shortest === undefined) return (text) => text;
  /** Of the literals, only their first `width` characters decide how far the search moves on. */
  const width = Math.min(shortest.length, longestShift);
  const shifts = new Uint8Array(0x10000).fill(width - 1);
  const endingWith = new Map<number, string[]>();
  for (const literal of sorted) {
    for (let last = 1; last < width; last += 1) {
      const block = blockAt(literal, last);
      shifts[block] = Math.min(shifts[block] ?? 0, width - 1 - last);
    }
    const block = blockAt(literal, width - 1);
    endingWith.set(block, [...(endingWith.get(block) ?? []), literal]);
  }
  return (text) => {
    let replaced = '';
    let copied = 0;
    let last = width - 1;
    while (last < text.length) {
      const block = blockAt(text, last);
      const shift = shifts[block] ?? 0;
      const start = last - width + 1;
      const found = shift > 0 ? undefined : endingWith.get(block)?.find((literal) => text.startsWith(literal, start));
      if (found === undefined) {
        last += shift || 1;
        continue;
      }
      replaced += text.slice(copied, start) + replacement;
      copied = start + found.length;
      last = copied + width - 1;
    }
    return copied === 0 ? text : replaced + text.slice(copied);
  };
}
