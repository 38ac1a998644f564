import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';

const sqliteBusy = 5;

/**
 * Runs `task` while no other process is inside a task on the same lock file. The lock is SQLite's: the kernel drops it
 * with the process that holds it, so a crash leaves nothing to clean up, which no hand-made lock file can promise.
 * @throws Error when the lock is not free within `timeoutSeconds`
 */
export async function withFileLock<Result>(path: string, timeoutSeconds: number, task: () => Promise<Result>): Promise<Result> {
  const lock = new DatabaseSync(path, { timeout: 0 });
  try {
    const deadline = Date.now() + timeoutSeconds * 1000;
    while (!tryLock(lock)) {
      if (Date.now() > deadline) throw new Error(`Another process has held ${path} for ${timeoutSeconds} s.`);
      await delay(25);
    }
    return await task();
  } finally {
    lock.close();
  }
}

function tryLock(lock: DatabaseSync): boolean {
  try {
    lock.exec('BEGIN EXCLUSIVE');
    return true;
  } catch (error) {
    if (error instanceof Error && 'errcode' in error && error.errcode === sqliteBusy) return false;
    throw error;
  }
}
