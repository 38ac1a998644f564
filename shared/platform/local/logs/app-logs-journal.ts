import { type FileHandle, mkdir, open, readdir, readFile, rm, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { limits } from '#shared/limits.ts';

/** A line of an app's log. Property names are short since they are stored with each entry. */
export interface JournalEntry {
  /** Milliseconds since 1970; never less than that of the entry before. */
  t: number;
  /** Process name: 'web.1', or 'paas'. */
  p: string;
  /** stdout, stderr or platform. */
  s: 'o' | 'e' | 'p';
  /** Release version. */
  v: number;
  m: string;
  /** Instance key, and the entry's end offset in the instance's raw file. Absent from platform entries. */
  k?: string;
  o?: number;
}

/** An entry that was read from the journal. */
export interface StoredEntry extends JournalEntry {
  /** Where it ends. */
  end: JournalPosition;
}

/** First line of each segment: how far each raw file was collected, so that a start need not read older segments. */
interface Checkpoint {
  /** Bytes collected, by raw file name (`<key>.o` or `<key>.e`). */
  offsets: Record<string, number>;
  v: number;
}

export interface JournalPosition {
  segment: number;
  /** Bytes. */
  offset: number;
}

/** Bytes. */
export interface JournalLimits {
  segmentBytes: number;
  /** Size of all segments together; the oldest are deleted first. */
  retainedBytes: number;
}

/**
 * The log of one app: JSON lines in numbered segments. It is also the only record of how far the raw files were collected, since
 * each entry contains its end offset; so a crash cannot make the two disagree.
 */
export interface Journal {
  /** Bytes of a raw file that were collected. */
  collected(rawName: string): number;
  /** The raw file was deleted: its offset is recorded no more. */
  forget(rawName: string): void;
  /** Time and release version of the newest entry; 0 when there is none. */
  readonly newest: { t: number; v: number };
  /** To be called again only when the last call has ended. */
  append(entries: readonly JournalEntry[]): Promise<void>;
  /** Resolves when all appended entries are on stable storage. */
  sync(): Promise<void>;
  /** The position behind the newest entry. */
  end(): JournalPosition;
  /** The newest `count` entries before `until` for which `wanted` is true, oldest first. */
  readNewest(count: number, wanted: (entry: JournalEntry) => boolean, until: JournalPosition): Promise<StoredEntry[]>;
  /**
   * Some entries from a position on, and the position to continue from. Where that segment was deleted, from the oldest entry on.
   * No entries and an unchanged position: it is the end.
   */
  readFrom(position: JournalPosition): Promise<{ entries: StoredEntry[]; next: JournalPosition }>;
  close(): Promise<void>;
}

const readBytes = 256 * 1024;

/** Opens the journal of a directory, and removes what a crash has left half written. */
export async function openJournal(
  directory: string,
  { segmentBytes, retainedBytes }: JournalLimits = limits.app.logs,
): Promise<Journal> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const pathOf = (segment: number) => join(directory, `${String(segment).padStart(10, '0')}.jsonl`);
  const sizes = await readSegmentSizes(directory, pathOf);
  let offsets = new Map<string, number>();
  const newest = { t: 0, v: 0 };
  let file: FileHandle | undefined;

  const newestSegment = (): number | undefined => [...sizes.keys()].at(-1);

  /** Truncates a half-written line, and reads the offsets from the newest segment. */
  async function recover(): Promise<void> {
    for (let segment = newestSegment(); segment !== undefined; segment = newestSegment()) {
      const text = await readFile(pathOf(segment));
      const whole = text.lastIndexOf(0x0a) + 1;
      if (whole < text.length) await truncate(pathOf(segment), whole);
      const [checkpoint, ...entries] = parseLines(text.subarray(0, whole)).map(({ line }) => line);
      if (checkpoint !== undefined && 'offsets' in checkpoint) {
        sizes.set(segment, whole);
        offsets = new Map(Object.entries(checkpoint.offsets));
        newest.v = checkpoint.v;
        for (const entry of entries) if (!('offsets' in entry)) note(entry);
        file = await open(pathOf(segment), 'a', 0o600);
        return;
      }
      // Only a half-written checkpoint: the segment had just been created.
      await rm(pathOf(segment));
      sizes.delete(segment);
    }
  }

  function note(entry: JournalEntry): void {
    newest.t = entry.t;
    newest.v = entry.v;
    if (entry.k !== undefined && entry.o !== undefined) offsets.set(`${entry.k}.${entry.s}`, entry.o);
  }

  async function beginSegment(): Promise<void> {
    await file?.datasync();
    await file?.close();
    const segment = (newestSegment() ?? 0) + 1;
    const checkpoint: Checkpoint = { offsets: Object.fromEntries(offsets), v: newest.v };
    const line = `${JSON.stringify(checkpoint)}\n`;
    file = await open(pathOf(segment), 'a', 0o600);
    await file.appendFile(line);
    sizes.set(segment, Buffer.byteLength(line));
    let total = [...sizes.values()].reduce((sum, size) => sum + size, 0);
    for (const [old, size] of [...sizes]) {
      if (total <= retainedBytes || old === segment) break;
      await rm(pathOf(old), { force: true });
      sizes.delete(old);
      total -= size;
    }
  }

  await recover();

  return {
    collected: (rawName) => offsets.get(rawName) ?? 0,
    forget: (rawName) => void offsets.delete(rawName),
    newest,
    async append(entries) {
      const segment = newestSegment();
      if (file === undefined || segment === undefined || (sizes.get(segment) ?? 0) >= segmentBytes) await beginSegment();
      const text = entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
      await file?.appendFile(text);
      const current = newestSegment() ?? 0;
      sizes.set(current, (sizes.get(current) ?? 0) + Buffer.byteLength(text));
      for (const entry of entries) note(entry);
    },
    sync: async () => await file?.datasync(),
    end() {
      const segment = newestSegment();
      return segment === undefined ? { segment: 0, offset: 0 } : { segment, offset: sizes.get(segment) ?? 0 };
    },
    async readNewest(count, wanted, until) {
      const found: StoredEntry[] = [];
      for (const segment of [...sizes.keys()].reverse()) {
        if (found.length >= count) break;
        if (segment > until.segment) continue;
        const bytes = await readFile(pathOf(segment)).catch(() => Buffer.alloc(0));
        const text = segment === until.segment ? bytes.subarray(0, until.offset) : bytes;
        for (let end = text.length; end > 0 && found.length < count; ) {
          const start = startOfSlice(text, end);
          const lines = parseEntries(text.subarray(start, end), { segment, offset: start });
          for (let at = lines.length - 1; at >= 0 && found.length < count; at -= 1) {
            const entry = lines[at];
            if (entry !== undefined && wanted(entry)) found.push(entry);
          }
          end = start;
          // Other work runs between two slices: a search through the whole log takes a second.
          await nextTurn();
        }
      }
      return found.reverse();
    },
    async readFrom(position) {
      const segments = [...sizes.keys()];
      const segment = segments.find((candidate) => candidate >= position.segment);
      if (segment === undefined) return { entries: [], next: position };
      const offset = segment === position.segment ? position.offset : 0;
      const length = Math.min(readBytes, (sizes.get(segment) ?? 0) - offset);
      const following = segments.find((candidate) => candidate > segment);
      if (length <= 0)
        return { entries: [], next: following === undefined ? { segment, offset } : { segment: following, offset: 0 } };
      const bytes = await readRange(pathOf(segment), offset, length);
      const whole = bytes.lastIndexOf(0x0a) + 1;
      const from = { segment, offset };
      return { entries: parseEntries(bytes.subarray(0, whole), from), next: { segment, offset: offset + whole } };
    },
    close: async () => await file?.close(),
  };
}

async function readSegmentSizes(directory: string, pathOf: (segment: number) => string): Promise<Map<number, number>> {
  const names = (await readdir(directory)).filter((name) => /^\d{10}\.jsonl$/.test(name)).sort();
  const segments = names.map((name) => Number.parseInt(name, 10));
  return new Map(await Promise.all(segments.map(async (segment) => [segment, (await stat(pathOf(segment))).size] as const)));
}

/** Where a slice of whole lines begins that ends at `end`: at most `readBytes` long, except for one longer line. */
function startOfSlice(bytes: Buffer, end: number): number {
  if (end <= readBytes) return 0;
  const start = bytes.indexOf(0x0a, end - readBytes) + 1;
  return start < end ? start : bytes.lastIndexOf(0x0a, end - 2) + 1;
}

/** Skips what is not JSON: a power cut may leave blocks of zeros. @returns lines with their end offset in bytes */
function parseLines(bytes: Buffer): { line: JournalEntry | Checkpoint; end: number }[] {
  const lines: { line: JournalEntry | Checkpoint; end: number }[] = [];
  for (let start = 0; start < bytes.length; ) {
    const newline = bytes.indexOf(0x0a, start);
    const end = newline === -1 ? bytes.length : newline + 1;
    try {
      lines.push({ line: JSON.parse(bytes.toString('utf8', start, end)) as JournalEntry | Checkpoint, end });
    } catch {
      // Not an entry.
    }
    start = end;
  }
  return lines;
}

function parseEntries(bytes: Buffer, { segment, offset }: JournalPosition): StoredEntry[] {
  return parseLines(bytes).flatMap(({ line, end }) =>
    'offsets' in line ? [] : [{ ...line, end: { segment, offset: offset + end } }],
  );
}

/** @returns at most `length` bytes from `offset` on; fewer at the file's end */
async function readRange(path: string, offset: number, length: number): Promise<Buffer> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, offset);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
