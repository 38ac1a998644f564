import { closeSync, existsSync, fstatSync, mkdirSync, openSync, readdirSync, rmSync, writeSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { type OutputLimits, parseSegmentName, segmentPath } from './output-segments.ts';

/**
 * Appends to the segments of one stream, and deletes the oldest. Works synchronously: the only process that uses it does nothing
 * else, and a write to a file waits for nothing but the disk.
 */
export class SegmentWriter {
  readonly #base: string;
  readonly #limits: OutputLimits;
  /** Offsets of the segments that exist, oldest first. */
  readonly #starts: number[];
  #file: number | undefined;
  /** Bytes in the newest segment. */
  #size = 0;

  /** Continues behind the segments that exist. */
  constructor(base: string, limits: OutputLimits) {
    this.#base = base;
    this.#limits = limits;
    mkdirSync(dirname(base), { recursive: true, mode: 0o700 });
    this.#starts = readdirSync(dirname(base))
      .map(parseSegmentName)
      .filter((parsed) => parsed?.base === basename(base))
      .map((parsed) => parsed?.start ?? 0)
      .sort((one, other) => one - other);
    const newest = this.#starts.at(-1);
    if (newest === undefined) return;
    this.#file = openSync(segmentPath(base, newest), 'a', 0o600);
    this.#size = fstatSync(this.#file).size;
  }

  /** @throws the error of the file system, after which the next call tries again behind what was written */
  append(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      const file = this.#file === undefined || this.#size >= this.#limits.segmentBytes ? this.#beginSegment() : this.#file;
      const written = writeSync(file, bytes, at, Math.min(bytes.length - at, this.#limits.segmentBytes - this.#size));
      at += written;
      this.#size += written;
    }
  }

  /** Whether the next segment would replace one that nobody has deleted yet. */
  get full(): boolean {
    while (this.#starts.length > 1 && !existsSync(segmentPath(this.#base, this.#starts[0] ?? 0))) this.#starts.shift();
    return this.#starts.length >= this.#most && this.#size >= this.#limits.segmentBytes / 2;
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  get #most(): number {
    return Math.max(1, Math.floor(this.#limits.retainedBytes / this.#limits.segmentBytes));
  }

  #beginSegment(): number {
    const start = (this.#starts.at(-1) ?? 0) + this.#size;
    this.close();
    // Before the new one is created, so that a full disk gets room first.
    while (this.#starts.length >= this.#most) rmSync(segmentPath(this.#base, this.#starts.shift() ?? 0), { force: true });
    const file = openSync(segmentPath(this.#base, start), 'a', 0o600);
    this.#starts.push(start);
    this.#file = file;
    this.#size = fstatSync(file).size;
    return file;
  }
}
