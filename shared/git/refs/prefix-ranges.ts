/**
 * The names that begin with one of these prefixes, as ranges in byte order: from the first, to before the second. Ranges do not
 * overlap. Prefixes that no full name of a ref has are left out.
 */
export function prefixRanges(prefixes: readonly string[]): (readonly [from: string, before: string])[] {
  const ranges: (readonly [string, string])[] = [];
  let last: string | undefined;
  // A prefix that begins with another one comes after it.
  for (const prefix of [...new Set(prefixes)].sort()) {
    if (last !== undefined && prefix.startsWith(last)) continue;
    if ((!prefix.startsWith('refs/') && !'refs/'.startsWith(prefix)) || prefix.includes('\0')) continue;
    last = prefix;
    ranges.push([prefix, successor(prefix)]);
  }
  return ranges;
}

/** The first text after all texts that begin with this one. UTF-8 sorts like code points. */
function successor(prefix: string): string {
  const points = [...prefix];
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    const next = (last.codePointAt(0) ?? 0) + 1;
    if (next <= 0x10ffff) return points.join('') + String.fromCodePoint(next >= 0xd800 && next <= 0xdfff ? 0xe000 : next);
  }
  return '\u{10ffff}';
}
