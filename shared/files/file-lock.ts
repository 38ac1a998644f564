import { closeSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';

const sqliteBusy = 5;
const retryMilliseconds = 25;

/** Referenced from here: an unreferenced connection is closed by the garbage collector, and its lock dropped. */
const heldLocks = new Set<DatabaseSync>();

/** A lock that this process holds. It is free again after `release`, or when the process ends. */
export interface FileLock {
  /** A second call does nothing. */
  release(): void;
}

/**
 * Takes the lock on a file if it is free. The file is created with mode 600 and stays empty. The lock is SQLite's: the kernel
 * drops it with the process that holds it, so a crash leaves nothing to clean up. A lock file that names its holder cannot
 * promise that: two processes that find the holder dead may both remove the file and take its place.
 * @returns undefined when another process, or another part of this one, holds it
 */
export function tryFileLock(path: string): FileLock | undefined {
  createIfMissing(path);
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    // Nothing is ever written, so no file is needed to undo it.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN IMMEDIATE');
    heldLocks.add(database);
    return {
      release() {
        if (heldLocks.delete(database)) database.close();
      },
    };
  } catch (error) {
    database.close();
    if (error instanceof Error && 'errcode' in error && error.errcode === sqliteBusy) return undefined;
    throw error;
  }
}

/**
 * Runs `task` while no other process is inside a task on the same lock file.
 * @throws Error when the lock is not free within `timeoutSeconds`
 */
export async function withFileLock<Result>(path: string, timeoutSeconds: number, task: () => Promise<Result>): Promise<Result> {
  const deadline = Date.now() + timeoutSeconds * 1000;
  let lock = tryFileLock(path);
  while (lock === undefined) {
    if (Date.now() > deadline) throw new Error(`Another process has held ${path} for ${timeoutSeconds} s.`);
    await delay(retryMilliseconds);
    lock = tryFileLock(path);
  }
  try {
    return await task();
  } finally {
    lock.release();
  }
}

/**
 * SQLite would let every user read the file, and with that hold a lock on it. Never opens a file that exists: closing it would
 * drop a lock that this process holds on it.
 */
function createIfMissing(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
