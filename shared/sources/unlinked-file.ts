import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '#shared/errors.ts';

/** A file without a directory entry: it disappears when it is closed, also after a crash. */
export async function openUnlinkedFile(directory: string): Promise<FileHandle> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, crypto.randomUUID());
  const file = await open(path, 'wx+', 0o600);
  await rm(path);
  return file;
}

const pieceBytes = 128 * 1024;

/** Reads `[from, end)` of a file, or what there is of it. (A read stream would close the file at its end.) */
export async function* readRange(file: FileHandle, from = 0, end = Number.POSITIVE_INFINITY): AsyncGenerator<Uint8Array> {
  for (let position = from; position < end; ) {
    const length = Math.min(pieceBytes, end - position);
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, position);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
    position += bytesRead;
  }
}

/** The error that a user gets in place of one of a full disk; any other error as it is. */
export function explainFullDisk(error: unknown): unknown {
  if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') return error;
  const message = 'The disk of the platform is full. The app is not at fault. Ask the operator to free space, then build again.';
  return new AppError('conflict', message, { cause: error });
}
