import { writeSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';

/** Writes synchronously, like packs are read: handing each piece to the thread pool would take longer than writing it. */
export function writeAll(file: FileHandle, bytes: Uint8Array, position: number): void {
  for (let written = 0; written < bytes.length; )
    written += writeSync(file.fd, bytes, written, bytes.length - written, position + written);
}
