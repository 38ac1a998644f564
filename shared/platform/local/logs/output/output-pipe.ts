import { readSync } from 'node:fs';
import { Socket } from 'node:net';
import type { OutputLimits } from './output-segments.ts';
import { SegmentWriter } from './segment-writer.ts';

/** Linux lets ordinary users make a pipe no larger (`/proc/sys/fs/pipe-max-size`). */
const largestPipeBytes = 1024 * 1024;
/** While the files are full, programs wait this long for a reader that deletes some. Then the oldest output is lost. */
const patienceMilliseconds = 3000;
const fullPollMilliseconds = 10;
const buffer = Buffer.allocUnsafe(64 * 1024);

/** Writes what arrives in a pipe to files, as long as it is open. */
export class OutputPipe {
  readonly fd: number;
  readonly limits: OutputLimits;
  readonly #writer: SegmentWriter;
  readonly #socket: Socket;
  readonly #isRead: () => boolean;
  /** Bytes that could not be written. */
  #lost = 0;
  /** Since when the pipe is not read, because the files are full. */
  #pausedAt: number | undefined;
  #outOfPatience = false;

  /**
   * @param fd of a `PipeStock`; belongs to this object from now on
   * @param isRead whether somebody reads the files, and deletes what was read
   */
  constructor(fd: number, base: string, limits: OutputLimits, isRead: () => boolean) {
    this.fd = fd;
    this.#isRead = isRead;
    this.limits = limits;
    this.#writer = new SegmentWriter(base, limits);
    this.#socket = new Socket({ fd, readable: true, writable: false });
    this.#socket.on('data', (bytes: Buffer) => {
      this.#append(bytes);
      this.#pauseWhileFull();
    });
    this.#socket.on('error', () => undefined);
  }

  /** Writes everything that was in the pipe when it was called, unless the files are full. */
  sync(): void {
    if (this.#pausedAt === undefined) this.#readAll();
  }

  #readAll(): void {
    for (let total = 0; total < largestPipeBytes; ) {
      const length = readAvailable(this.fd);
      if (length === 0) return;
      this.#append(buffer.subarray(0, length));
      total += length;
    }
  }

  /** Writes the rest, and closes pipe and files. */
  close(): void {
    this.#readAll();
    this.#socket.destroy();
    this.#writer.close();
  }

  /** A program that prints faster than its output is read is slowed down, as long as somebody reads. */
  #pauseWhileFull(): void {
    if (!this.#writer.full) this.#outOfPatience = false;
    else if (this.#isRead() && !this.#outOfPatience && !this.#socket.destroyed) {
      this.#pausedAt ??= Date.now();
      this.#outOfPatience = Date.now() - this.#pausedAt > patienceMilliseconds;
      this.#socket.pause();
      setTimeout(() => this.#pauseWhileFull(), fullPollMilliseconds);
      return;
    }
    if (this.#pausedAt === undefined) return;
    this.#pausedAt = undefined;
    this.#socket.resume();
  }

  /** Programs never wait for a disk that is full: their output is lost then. */
  #append(bytes: Uint8Array): void {
    try {
      if (this.#lost > 0) this.#writer.append(Buffer.from(`… ${this.#lost} bytes of output were lost: the disk was full\n`));
      this.#lost = 0;
      this.#writer.append(bytes);
    } catch {
      this.#lost += bytes.length;
    }
  }
}

/** @returns how many bytes are in `buffer`; 0 if the pipe is empty */
function readAvailable(fd: number): number {
  try {
    return readSync(fd, buffer);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0;
    throw error;
  }
}
