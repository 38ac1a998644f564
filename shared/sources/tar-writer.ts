import type { SourceEntry } from '#shared/platform/builds.ts';

const blockBytes = 512;
/** Longer names go to a pax record. */
const nameBytes = 100;
/** Of a file as large as the size field of ustar can say. */
const sizeDigits = 11;
const encoder = new TextEncoder();

/**
 * A tree as a tar in the pax format, which GNU tar, BSD tar, busybox and Go read: files of mode 644 or 755 and symlinks, of
 * root and of 1970, so that equal trees are equal tars. Directories are implied by the paths.
 */
export async function* writeTar(source: AsyncIterable<SourceEntry>): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for await (const { path, kind, content } of source) {
    if (kind === 'symlink') {
      const target = new TextDecoder().decode(await readWhole(content));
      yield* writeHeader({ path, type: '2', mode: 0o777, size: 0, target });
      continue;
    }
    const size = content instanceof Uint8Array ? content.length : content.size;
    yield* writeHeader({ path, type: '0', mode: kind === 'executable' ? 0o755 : 0o644, size, target: '' });
    let written = 0;
    for await (const chunk of content instanceof Uint8Array ? [content] : content) {
      written += chunk.length;
      yield new Uint8Array(chunk);
    }
    if (written !== size) throw new RangeError(`${path} has ${written} bytes and not ${size}.`);
    yield new Uint8Array(-size & (blockBytes - 1));
  }
  yield new Uint8Array(2 * blockBytes);
}

interface Header {
  path: string;
  /** '0' a file, '2' a symlink, 'x' records about the entry after it. */
  type: '0' | '2' | 'x';
  mode: number;
  size: number;
  target: string;
}

function* writeHeader(header: Header): Generator<Uint8Array<ArrayBuffer>> {
  const records = Object.entries({ path: header.path, linkpath: header.target })
    .filter(([, value]) => !fits(value))
    .map(([name, value]) => paxRecord(name, value));
  if (records.length > 0) {
    const text = encoder.encode(records.join(''));
    yield block({ path: 'pax', type: 'x', mode: 0o644, size: text.length, target: '' });
    yield text;
    yield new Uint8Array(-text.length & (blockBytes - 1));
  }
  yield block(header);
}

function fits(value: string): boolean {
  return encoder.encode(value).length <= nameBytes && /^[\x20-\x7e]*$/.test(value);
}

/** '<length> <name>=<value>\n', where the length counts its own digits. */
function paxRecord(name: string, value: string): string {
  const rest = encoder.encode(` ${name}=${value}\n`).length;
  let length = rest + 1;
  while (String(length).length + rest !== length) length += 1;
  return `${length} ${name}=${value}\n`;
}

function block({ path, type, mode, size, target }: Header): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(blockBytes);
  const put = (text: string, at: number, longest: number): void => bytes.set(encoder.encode(text).subarray(0, longest), at);
  const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, '0')}\0`;
  put(path, 0, nameBytes);
  put(octal(mode, 7), 100, 8);
  put(octal(0, 7), 108, 8);
  put(octal(0, 7), 116, 8);
  put(octal(size, sizeDigits), 124, 12);
  put(octal(0, 11), 136, 12);
  // The checksum is that of the header with blanks in its place.
  put('        ', 148, 8);
  put(type, 156, 1);
  put(target, 157, nameBytes);
  put('ustar\x0000', 257, 8);
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  put(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 8);
  return bytes;
}

async function readWhole(content: SourceEntry['content']): Promise<Uint8Array> {
  if (content instanceof Uint8Array) return content;
  const whole = new Uint8Array(content.size);
  let at = 0;
  for await (const chunk of content) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}
