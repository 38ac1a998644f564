/** Operations on directories that tenants' code wrote. They may have any depth and any names, so the system's own tools are used. */
import { execFile } from 'node:child_process';
import { lstat, rename } from 'node:fs/promises';
import { promisify } from 'node:util';
import { ifMissing } from '#shared/files/if-missing.ts';
import { hostCommands } from '../processes/host-commands.ts';

const run = promisify(execFile);
const env = { PATH: '/usr/bin:/bin', LC_ALL: 'C' };

/** Removes a directory and everything in it. Does nothing when there is none. */
export async function removeTree(path: string): Promise<void> {
  if ((await lstat(path).catch(ifMissing(undefined))) === undefined) return;
  const remove = (): Promise<string> => hostCommands.run('rm', ['-rf', '--one-file-system', '--', path]);
  try {
    await remove();
  } catch {
    // Without root, directories without write permission (mode 0000, or read-only as Go's modules) need it first. Root never does,
    // and must not: code that still holds a directory open could replace a file by a link before its mode is changed.
    if (process.getuid?.() !== 0) await hostCommands.run('chmod', ['-R', 'u+rwX', '--', path]).catch(() => undefined);
    await remove();
  }
}

/** @returns bytes on disk */
export async function measureTree(path: string): Promise<number> {
  const { stdout } = await run('du', ['--summarize', '--block-size=1', '--', path], { env }).catch(
    (error: { stdout?: string }) => ({
      stdout: error.stdout ?? '', // a file that vanished meanwhile: the sum of the rest is printed all the same
    }),
  );
  return Number.parseInt(stdout, 10) || 0;
}

/** @returns bytes that its files and directories contain, whatever they take on the disk */
export async function measureContent(path: string): Promise<number> {
  const { stdout } = await run('du', ['--summarize', '--apparent-size', '--block-size=1', '--', path], { env });
  return Number.parseInt(stdout, 10) || 0;
}

/** Everything written below it is on stable storage afterwards. */
export async function syncTree(path: string): Promise<void> {
  await hostCommands.run('sync', ['--file-system', '--', path]);
}

/** False when there was nothing at `from`. */
export async function moveTree(from: string, to: string): Promise<boolean> {
  return await rename(from, to).then(() => true, ifMissing(false));
}
