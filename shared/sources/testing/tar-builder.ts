/** Tars that no program would write. */

export interface RawEntry {
  path: string | Uint8Array;
  /** Default: a file. */
  type?: string;
  content?: string | Uint8Array;
  target?: string;
  mode?: number;
  /** As it is stated, when that is not the size of the content. */
  size?: number;
}

const block = 512;

export function tarOf(...entries: readonly RawEntry[]): Buffer {
  return Buffer.concat([...entries.map(encodeEntry), Buffer.alloc(2 * block)]);
}

export function encodeEntry({ path, type = '0', content = '', target = '', mode = 0o644, size }: RawEntry): Buffer {
  const data = Buffer.from(content);
  const header = Buffer.alloc(block);
  header.set(Buffer.from(path).subarray(0, 100), 0);
  header.write(mode.toString(8).padStart(7, '0'), 100);
  header.write((size ?? data.length).toString(8).padStart(11, '0'), 124);
  header.write('        ', 148);
  header.write(type, 156);
  header.write(target, 157, 100);
  header.write('ustar\x0000', 257, 'latin1');
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return Buffer.concat([header, data, Buffer.alloc(-data.length & (block - 1))]);
}

/** What pax says of the entry after it. */
export function paxEntry(records: Readonly<Record<string, string>>, type = 'x'): RawEntry {
  const lines = Object.entries(records).map(([key, value]) => {
    const rest = Buffer.byteLength(` ${key}=${value}\n`);
    let length = rest + 1;
    while (String(length).length + rest !== length) length += 1;
    return `${length} ${key}=${value}\n`;
  });
  return { path: 'PaxHeader', type, content: lines.join('') };
}
