/**
 * The contents of all elements with this name. Responses of S3 are simple enough for that: they have no attributes that matter, and
 * no element contains one of the same name.
 */
export function* elements(xml: string, name: string): Iterable<string> {
  for (const [, inner = ''] of xml.matchAll(new RegExp(`<${name}(?:\\s[^>]*)?>([^]*?)</${name}>`, 'g'))) yield inner;
}

/** The text of the first element with this name; undefined when there is none. */
export function textOf(xml: string, name: string): string | undefined {
  for (const inner of elements(xml, name)) return decode(inner);
  return undefined;
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

function decode(text: string): string {
  return text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (whole, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) return entities[name] ?? whole;
    return String.fromCodePoint(decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal));
  });
}
