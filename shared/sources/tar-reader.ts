import { ByteReader, StreamEndedError } from '#shared/byte-reader.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';
import { archiveFault, quoteName } from '#shared/sources/archive-fault.ts';

/**
 * Streaming tar reader: ustar, pax and GNU long names. Refuses input that programs could interpret differently, and entries that
 * are neither files, directories nor symlinks. Names are returned as written: the caller must check them.
 */

/** One entry of a tar. */
export interface TarEntry {
  path: string;
  kind: 'file' | 'executable' | 'directory' | 'symlink';
  /** Bytes of a file; 0 for other kinds. */
  size: number;
  /** Target of a symlink; '' for other kinds. */
  target: string;
  /** Must be read, if at all, before the next entry is requested. */
  content: AsyncIterable<Uint8Array>;
}

/** Limits on a tar. */
export interface TarLimits {
  /** Size of the whole tar after decompression. */
  bytes: number;
  /** Number of entries, including those that only describe others. */
  entries: number;
}

const blockBytes = 512;
const pieceBytes = 256 * 1024;
/** Far more than the attributes that macOS and SELinux write. */
const longestExtension = 1024 * 1024;
/** Of one entry. A record has five bytes or more, and compresses to almost nothing. */
const mostRecords = 1000;
const zeros = Buffer.alloc(64 * 1024);

/** What an entry of type x, L or K states about the next entry. */
interface Extension {
  path?: Buffer;
  target?: Buffer;
  size?: number;
}

interface Header extends Required<Extension> {
  type: string;
  mode: number;
}

/** @throws AppError validation_failed for input that is not a tar or must not be unpacked */
export async function* readTar(input: AsyncIterable<Uint8Array>, limits: TarLimits): AsyncGenerator<TarEntry> {
  const bytes = counted(input, limits.bytes);
  try {
    yield* readEntries(new ByteReader(bytes), limits.entries);
  } finally {
    await bytes.return(undefined);
  }
}

async function* readEntries(reader: ByteReader, most: number): AsyncGenerator<TarEntry> {
  let extension: Extension = {};
  for (let entries = 1; ; entries++) {
    const block = await take(reader, blockBytes);
    if (isZero(block)) return await expectEnd(reader);
    if (entries > most) throw archiveFault(`has more than ${most} entries`);
    const plain = readHeader(block);
    if ('xgLK'.includes(plain.type)) {
      if (plain.size > longestExtension) throw archiveFault('has a pax record larger than 1 MiB');
      extension = { ...extension, ...readExtension(plain.type, await take(reader, plain.size)) };
      await take(reader, paddingOf(plain.size));
      continue;
    }
    const header = { ...plain, ...extension };
    extension = {};
    let left = header.size;
    const content = async function* (): AsyncGenerator<Uint8Array> {
      while (left > 0) {
        const piece = await take(reader, Math.min(left, pieceBytes));
        left -= piece.length;
        yield piece;
      }
    };
    // Type V is a volume label, not a file.
    if (header.type !== 'V') yield { ...describe(header), content: content() };
    for await (const _unread of content());
    await take(reader, paddingOf(header.size));
  }
}

function paddingOf(size: number): number {
  return -size & (blockBytes - 1);
}

async function* counted(input: AsyncIterable<Uint8Array>, longest: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of input) {
    bytes += chunk.length;
    if (bytes > longest) throw archiveFault(`is larger than ${Math.round(longest / 1024 / 1024)} MiB when unpacked`);
    yield chunk;
  }
}

async function take(reader: ByteReader, length: number): Promise<Buffer> {
  try {
    const bytes = await reader.read(length);
    if (bytes !== undefined) return bytes;
  } catch (error) {
    if (!(error instanceof StreamEndedError)) throw error;
  }
  throw archiveFault('ends too early: it is incomplete');
}

/** A tar ends with zero blocks. Some programs would read data behind them and others would not. */
async function expectEnd(reader: ByteReader): Promise<void> {
  const rest = reader.rest();
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) {
    if (!isZero(next.value)) throw archiveFault('has data after its end: two archives were concatenated. Create one archive');
  }
}

function isZero(bytes: Uint8Array): boolean {
  for (let at = 0; at < bytes.length; at += zeros.length) {
    const part = bytes.subarray(at, at + zeros.length);
    if (!zeros.subarray(0, part.length).equals(part)) return false;
  }
  return true;
}

function readHeader(block: Buffer): Header {
  let sum = 0;
  // The checksum field itself counts as spaces.
  for (let at = 0; at < blockBytes; at++) sum += at >= 148 && at < 156 ? 0x20 : (block[at] ?? 0);
  if (readNumber(block, 148, 8) !== sum) throw archiveFault('does not contain a tar, or a damaged one');
  const name = readField(block, 0, 100);
  // Only POSIX archives have a path prefix here; GNU archives use these bytes for something else.
  const prefix = block.toString('latin1', 257, 263) === 'ustar\0' ? readField(block, 345, 155) : Buffer.alloc(0);
  return {
    path: prefix.length === 0 ? name : Buffer.concat([prefix, Buffer.from('/'), name]),
    target: readField(block, 157, 100),
    mode: readNumber(block, 100, 8),
    size: readNumber(block, 124, 12),
    type: String.fromCharCode(block[156] ?? 0),
  };
}

function readField(block: Buffer, at: number, length: number): Buffer {
  return untilNul(block.subarray(at, at + length));
}

function untilNul(bytes: Buffer): Buffer {
  const end = bytes.indexOf(0);
  return end < 0 ? bytes : bytes.subarray(0, end);
}

/** Octal digits, or a binary number after a first byte of 0x80. */
function readNumber(block: Buffer, at: number, length: number): number {
  if (block[at] === 0x80) {
    const number = BigInt(`0x${block.toString('hex', at + 1, at + length)}`);
    if (number <= Number.MAX_SAFE_INTEGER) return Number(number);
  }
  const [, digits] = /^ *([0-7]*)[ \0]*$/.exec(block.toString('latin1', at, at + length)) ?? [];
  if (digits === undefined) throw archiveFault('does not contain a tar, or a damaged one');
  return digits === '' ? 0 : Number.parseInt(digits, 8);
}

function readExtension(type: string, bytes: Buffer): Extension {
  if (type === 'L') return { path: untilNul(bytes) };
  if (type === 'K') return { target: untilNul(bytes) };
  const records = readRecords(bytes);
  const [path, target, size] = ['path', 'linkpath', 'size'].map((key) => records.get(key));
  if (type === 'g') {
    if (path !== undefined || target !== undefined || size !== undefined) throw archiveFault('has a global path or size record');
    return {};
  }
  if (size !== undefined && !/^\d{1,15}$/.test(size.toString('latin1'))) throw archiveFault('states an impossible size');
  return omitUndefined({ path, target, size: size && Number(size.toString('latin1')) });
}

/** pax records: `length key=value\n`; the length counts the whole record. */
function readRecords(bytes: Buffer): ReadonlyMap<string, Buffer> {
  const records = new Map<string, Buffer>();
  let count = 0;
  for (let at = 0; at < bytes.length; ) {
    count += 1;
    if (count > mostRecords) throw archiveFault(`has an entry with more than ${mostRecords} pax records`);
    const [, digits = ''] = /^([1-9]\d{0,7}) /.exec(bytes.toString('latin1', at, at + 9)) ?? [];
    const end = at + Number(digits);
    const keyAt = at + digits.length + 1;
    const equals = bytes.indexOf(0x3d, keyAt);
    if (digits === '' || end > bytes.length || bytes[end - 1] !== 0x0a || equals < 0 || equals >= end)
      throw archiveFault('has a malformed pax record');
    const key = bytes.toString('utf8', keyAt, equals);
    if (key.startsWith('GNU.sparse')) throw sparse();
    records.set(key, bytes.subarray(equals + 1, end - 1));
    at = end;
  }
  return records;
}

function describe(header: Header): Omit<TarEntry, 'content'> {
  const path = decode(header.path);
  const kind = kindOf(header, path);
  if (kind !== 'file' && kind !== 'executable' && header.size > 0)
    throw archiveFault(`has content in an entry that cannot have any: ${quoteName(path)}`);
  return { path, kind, size: header.size, target: kind === 'symlink' ? decode(header.target) : '' };
}

function kindOf({ type, mode }: Header, path: string): TarEntry['kind'] {
  switch (type) {
    case '\0':
    case '0':
    case '7':
      // Old tar programs wrote directories as files with a trailing slash.
      if (path.endsWith('/')) return 'directory';
      return (mode & 0o100) === 0 ? 'file' : 'executable';
    case '2':
      return 'symlink';
    case '5':
      return 'directory';
    case '1':
      throw archiveFault(`has a hard link: ${quoteName(path)}. Create it with \`tar --hard-dereference\``);
    case 'S':
      throw sparse();
    default:
      throw archiveFault(`has an entry that is neither file, directory nor symlink: ${quoteName(path)}. Leave it out`);
  }
}

function sparse(): Error {
  return archiveFault('has a sparse file. Create it without `--sparse`');
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw archiveFault(`has a name that is not UTF-8: ${quoteName(bytes.toString('latin1'))}`, error);
  }
}
