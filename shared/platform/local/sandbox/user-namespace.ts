import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type FileHandle, open, writeFile } from 'node:fs/promises';
import { type UserRange, usersOfContainer } from './user-ranges.ts';

/**
 * Creates a user namespace for a container; only root can. It exists while the handle is open or a process is in it.
 * @returns the namespace, for setns(2)
 */
export async function openUserNamespace({ root, first }: UserRange): Promise<FileHandle> {
  // Tells that it is in the namespace, then stays until its input ends.
  const holder = spawn('/usr/bin/unshare', ['--user', '--', '/bin/sh', '-c', 'echo ready; read -r end'], {
    env: { PATH: '/usr/bin:/bin' },
    cwd: '/',
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const ended = once(holder, 'exit').then(() => undefined);
  try {
    const ready = await Promise.race([once(holder.stdout, 'data'), ended]);
    if (ready === undefined) throw new Error('The kernel creates no user namespace for containers.');
    const map = `0 ${root} 1\n1 ${first + 1} ${usersOfContainer - 1}\n`;
    for (const file of ['uid_map', 'gid_map']) await writeFile(`/proc/${holder.pid}/${file}`, map);
    return await open(`/proc/${holder.pid}/ns/user`, 'r');
  } finally {
    holder.stdin.end();
    await ended;
  }
}
