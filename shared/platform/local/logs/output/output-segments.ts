/**
 * Files that collect a stream of bytes. Each file is named `<base>.<offset of its first byte in the stream>`; the oldest are deleted
 * when there are too many, so that a stream never uses more disk space than its limit.
 */
import { open, readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { ifMissing } from '#shared/files/if-missing.ts';

/** A file with a part of a stream. */
export interface OutputSegment {
  readonly path: string;
  /** Offset of its first byte in the stream. */
  readonly start: number;
}

/** Bytes. */
export interface OutputLimits {
  readonly segmentBytes: number;
  /** Of all segments of a stream together. */
  readonly retainedBytes: number;
}

const offsetDigits = 16;
const segmentName = /^(.+)\.(\d{16})$/;

/** @param base path of the stream, without offset */
export function segmentPath(base: string, start: number): string {
  return `${base}.${String(start).padStart(offsetDigits, '0')}`;
}

/** @returns the base name and offset of a segment's file; undefined for any other file */
export function parseSegmentName(name: string): { base: string; start: number } | undefined {
  const [, base, start] = segmentName.exec(name) ?? [];
  return base === undefined ? undefined : { base, start: Number(start) };
}

/** The segments of each stream in a directory, by the base name of the stream, oldest first. */
export async function listSegments(directory: string): Promise<ReadonlyMap<string, readonly OutputSegment[]>> {
  const streams = new Map<string, OutputSegment[]>();
  for (const name of await readdir(directory).catch(ifMissing([]))) {
    const parsed = parseSegmentName(name);
    if (parsed === undefined) continue;
    const segments = streams.get(parsed.base) ?? [];
    segments.push({ path: join(directory, name), start: parsed.start });
    streams.set(parsed.base, segments);
  }
  for (const segments of streams.values()) segments.sort((one, other) => one.start - other.start);
  return streams;
}

/** The segments of one stream, oldest first. */
export async function listStream(base: string): Promise<readonly OutputSegment[]> {
  return (await listSegments(dirname(base))).get(basename(base)) ?? [];
}

/** A piece of a stream. */
export interface StreamPiece {
  readonly bytes: Buffer;
  /** Offset of the first byte. Larger than the offset asked for if older segments were deleted. */
  readonly start: number;
  /** When the newest of these bytes were written, at the latest. Milliseconds since 1970. */
  readonly modified: number;
}

/**
 * Reads a stream from an offset on, across segments.
 * @param longestBytes most that is returned
 * @returns undefined if nothing was written behind the offset
 */
export async function readStream(
  segments: readonly OutputSegment[],
  offset: number,
  longestBytes: number,
): Promise<StreamPiece | undefined> {
  const pieces: Buffer[] = [];
  let start: number | undefined;
  let modified = 0;
  let length = 0;
  for (const [at, segment] of segments.entries()) {
    const following = segments[at + 1]?.start;
    const position = start === undefined ? Math.max(offset, segment.start) : start + length;
    if (length >= longestBytes || (following !== undefined && following <= position)) continue;
    const read = await readSegment(segment, position, longestBytes - length);
    // Deleted meanwhile: what was read before it has a gap behind it.
    if (read === undefined) {
      if (start !== undefined) break;
      continue;
    }
    if (read.bytes.length === 0) continue;
    start ??= position;
    length += read.bytes.length;
    modified = read.modified;
    pieces.push(read.bytes);
    if (following !== undefined && start + length < following) break;
  }
  return start === undefined ? undefined : { bytes: Buffer.concat(pieces, length), start, modified };
}

async function readSegment(
  { path, start }: OutputSegment,
  position: number,
  longestBytes: number,
): Promise<{ bytes: Buffer; modified: number } | undefined> {
  const file = await open(path, 'r').catch(ifMissing(undefined));
  if (file === undefined) return undefined;
  try {
    const { size, mtimeMs } = await file.stat();
    const length = Math.max(0, Math.min(longestBytes, size - (position - start)));
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, position - start);
    return { bytes: buffer.subarray(0, bytesRead), modified: mtimeMs };
  } finally {
    await file.close();
  }
}
