import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { StartError } from '#deploy/host/start-error.ts';
import { type Wait, waitFor } from '#deploy/host/wait-for.ts';
import { tryFileLock } from '#shared/files/file-lock.ts';
import { ifMissing } from '#shared/files/if-missing.ts';
import { replaceFile } from '#shared/files/replace-file.ts';
import { syncDirectory } from '#shared/files/sync-directory.ts';
import { isAlive, type ProcessIdentity, readProcessIdentity } from '#shared/platform/local/processes/process-identity.ts';

const keyBytes = 32;

/** Creates the directory. Others may pass through (PostgreSQL's own user must), not look. */
export async function prepareDataDirectory(dataDir: string): Promise<void> {
  try {
    await makeDirectories(dataDir);
    const probe = join(dataDir, `.write-test-${process.pid}`);
    await writeFile(probe, '');
    await rm(probe);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
    throw new StartError(
      `PAAS_DATA_DIR: cannot write to ${dataDir} (${code}). Choose a directory of your own, or free some disk.`,
    );
  }
}

/** Parents first. Not Node's own `recursive`, which never returns for a place where nothing can be made, as /proc. */
async function makeDirectories(path: string): Promise<void> {
  if (existsSync(path)) return;
  await makeDirectories(dirname(path));
  await mkdir(path, { mode: 0o711 }).catch((error: NodeJS.ErrnoException) => {
    // Another process of the platform starts at the same time.
    if (error.code !== 'EEXIST') throw error;
  });
}

/**
 * Makes this process the only control plane of a data directory. The kernel holds the lock, and frees it when the process ends in
 * any way. Beside it `lock` names the holder by pid and start time, for the message to whoever comes second.
 * @throws StartError naming the holder
 */
export async function lockDataDirectory(dataDir: string): Promise<{ release(): Promise<void> }> {
  const record = join(dataDir, 'lock');
  const lock = tryFileLock(join(dataDir, 'lock.sqlite'));
  try {
    const holder = await readHolder(record);
    // A version before this one only wrote its pid down.
    const holderIsAlive = holder !== undefined && (await isAlive(holder));
    if (lock === undefined || (holderIsAlive && holder.pid !== process.pid)) {
      const pid = holderIsAlive ? ` (pid ${holder.pid})` : '';
      throw new StartError(`Another paas${pid} runs on ${dataDir}. Stop it, or set PAAS_DATA_DIR to another directory.`);
    }
    await replaceFile(record, JSON.stringify(await readProcessIdentity(process.pid)), 0o600);
  } catch (error) {
    lock?.release();
    throw error;
  }
  return {
    async release() {
      try {
        await rm(record, { force: true });
      } finally {
        lock.release();
      }
    },
  };
}

/**
 * Waits until this process is the only control plane of the data directory.
 * @throws StartError when the wait was ended by `stopping`
 */
export async function awaitDataDirectory(
  dataDir: string,
  wait: Pick<Wait, 'report' | 'stopping'>,
): Promise<{ release(): Promise<void> }> {
  let lock: Awaited<ReturnType<typeof lockDataDirectory>> | undefined;
  const isThere = async (): Promise<boolean> => {
    lock = await lockDataDirectory(dataDir).catch((error: unknown) => {
      if (error instanceof StartError) return undefined;
      throw error;
    });
    return lock !== undefined;
  };
  await waitFor({ ...wait, isThere, what: `the worker that drives ${dataDir} to end. This one takes over then` });
  if (lock === undefined) throw new Error('The lock was not taken.');
  return lock;
}

async function readHolder(record: string): Promise<ProcessIdentity | undefined> {
  try {
    return JSON.parse(await readFile(record, 'utf8')) as ProcessIdentity;
  } catch {
    return undefined;
  }
}

/**
 * The key that seals secrets in the database: PAAS_SECRET_KEY, else made once and kept beside the database.
 * Whoever loses it loses what is sealed.
 */
export async function loadMasterKey(dataDir: string, secretKey: string | undefined): Promise<Uint8Array<ArrayBuffer>> {
  if (secretKey !== undefined) return Uint8Array.fromBase64(secretKey);
  const path = join(dataDir, 'master.key');
  const existing = await readFile(path, 'utf8').catch(ifMissing(undefined));
  if (existing === undefined) return createMasterKey(path);
  const key = Uint8Array.fromBase64(existing.trim());
  if (key.length !== keyBytes)
    throw new StartError(`${path} is damaged: it must hold ${keyBytes} bytes in base64. Restore it from a backup.`);
  return key;
}

/**
 * The key of a platform whose worker creates it: PAAS_SECRET_KEY, else the file in the data directory, once it is there.
 * @throws StartError when the wait was ended by `stopping`
 */
export async function awaitMasterKey(
  dataDir: string,
  secretKey: string | undefined,
  wait: Pick<Wait, 'report' | 'stopping'>,
): Promise<Uint8Array<ArrayBuffer>> {
  const path = join(dataDir, 'master.key');
  const what = `a worker of ${dataDir} to create ${path}. On another machine, set PAAS_SECRET_KEY to the content of that file`;
  if (secretKey === undefined) await waitFor({ ...wait, isThere: async () => existsSync(path), what });
  return loadMasterKey(dataDir, secretKey);
}

/** On the disk before it is used: a key that a power cut took would make everything it sealed unreadable. */
async function createMasterKey(path: string): Promise<Uint8Array<ArrayBuffer>> {
  const key = new Uint8Array(randomBytes(keyBytes));
  await replaceFile(path, `${key.toBase64()}\n`, 0o600);
  await syncDirectory(dirname(path));
  return key;
}
