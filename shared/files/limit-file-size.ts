import { open, truncate, writeFile } from 'node:fs/promises';
import { ifMissing } from './if-missing.ts';

/** What is kept of a file that is too long, at most. */
const keptBytes = 1024 * 1024;

/**
 * Empties a log that is longer than `longestBytes` after its last mebibyte was copied to `<file>.1`. Whoever has it open for appending
 * goes on writing at its start; what is written between the copy and the cut is lost. Does nothing if there is no file.
 */
export async function limitFileSize(file: string, longestBytes: number): Promise<void> {
  const log = await open(file, 'r').catch(ifMissing(undefined));
  if (log === undefined) return;
  try {
    const { size } = await log.stat();
    if (size <= longestBytes) return;
    const kept = Math.min(keptBytes, size);
    const { buffer, bytesRead } = await log.read(Buffer.alloc(kept), 0, kept, size - kept);
    await writeFile(`${file}.1`, buffer.subarray(0, bytesRead), { mode: 0o600 });
    await truncate(file);
  } finally {
    await log.close();
  }
}
