import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { tryFileLock, withFileLock } from '#shared/files/file-lock.ts';

let directory: string;
let path: string;
let holder: ChildProcessByStdio<null, Readable, null> | undefined;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-lock-'));
  path = join(directory, 'lock');
});
afterEach(async () => {
  holder?.kill('SIGKILL');
  await rm(directory, { recursive: true, force: true });
});

/** Another process inside a task that never ends. Its garbage is collected, which must not touch the lock. */
async function startHolder(): Promise<ChildProcess> {
  const program = `import { tryFileLock, withFileLock } from ${JSON.stringify(new URL('file-lock.ts', import.meta.url).href)};
    await withFileLock(${JSON.stringify(path)}, 1, () => new Promise(() => {
      setTimeout(() => { gc(); process.stdout.write('held'); }, 1);
      setInterval(() => {}, 1000);
    }));`;
  holder = spawn(process.execPath, ['--expose-gc', '--input-type=module-typescript', '-e', program], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await once(holder.stdout, 'data');
  return holder;
}

it('keeps others out while its holder lives, and lets them in when the holder is killed', async () => {
  const child = await startHolder();
  await expect(withFileLock(path, 0.1, () => Promise.resolve())).rejects.toThrow('Another process has held');
  const entered = withFileLock(path, 10, () => Promise.resolve('in'));
  child.kill('SIGKILL');
  expect(await entered).toBe('in');
});

it('lets tasks of one process in one after the other', async () => {
  let inside = 0;
  let most = 0;
  const task = async () => {
    inside += 1;
    most = Math.max(most, inside);
    await new Promise((resolve) => setImmediate(resolve));
    inside -= 1;
  };
  await Promise.all(Array.from({ length: 10 }, () => withFileLock(path, 10, task)));
  expect(most).toBe(1);
});

it('is readable by nobody else, and leaves no other file beside it', async () => {
  await withFileLock(path, 1, async () => {
    expect(await readdir(directory)).toEqual(['lock']);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });
});

it('is free again after a task that failed', async () => {
  await expect(withFileLock(path, 1, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  expect(await withFileLock(path, 1, () => Promise.resolve('in'))).toBe('in');
});

it('one of several processes that try at the same time gets the lock', () => {
  const other = tryFileLock(path);
  other?.release();
  // As far as another process is that will find it taken in a moment.
  const looking = new DatabaseSync(path);
  looking.exec('BEGIN; SELECT count(*) FROM sqlite_schema');
  try {
    const lock = tryFileLock(path);
    expect(lock).toBeDefined();
    expect(tryFileLock(path)).toBeUndefined();
    lock?.release();
  } finally {
    looking.close();
  }
});
