import { readdir, readFile, readlink } from 'node:fs/promises';

interface PortOwner {
  readonly pid: number;
  /** The program's name. */
  readonly command: string;
}

/**
 * What the operator reads when a port cannot be opened.
 * @param setting the one that changes the port
 */
export async function describePortTaken(port: number, setting: string): Promise<string> {
  const owner = await findPortOwner(port);
  const by = owner === undefined ? '' : ` (by pid ${owner.pid} ${owner.command})`;
  return `Port ${port} is taken${by}: set ${setting} to another.`;
}

/** The process that listens on a TCP port. Undefined where /proc does not show it: processes of other users are shown to root only. */
async function findPortOwner(port: number): Promise<PortOwner | undefined> {
  const inodes = new Set(
    (await Promise.all(['/proc/net/tcp', '/proc/net/tcp6'].map((table) => listeningInodes(table, port)))).flat(),
  );
  if (inodes.size === 0) return undefined;
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  for (const pid of pids) {
    const handles = await readdir(`/proc/${pid}/fd`).catch(() => []);
    for (const handle of handles) {
      const target = await readlink(`/proc/${pid}/fd/${handle}`).catch(() => '');
      const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
      if (inode === undefined || !inodes.has(inode)) continue;
      return {
        pid: Number(pid),
        command: (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '?')).trim().split(' ')[0] ?? '?',
      };
    }
  }
  return undefined;
}

/** Lines are `sl local_address rem_address st … inode`, with addresses `HEX:PORT` and state 0A for listening. */
async function listeningInodes(table: string, port: number): Promise<string[]> {
  const text = await readFile(table, 'utf8').catch(() => '');
  const wanted = port.toString(16).toUpperCase().padStart(4, '0');
  return text.split('\n').flatMap((line) => {
    const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/);
    return state === '0A' && local.endsWith(`:${wanted}`) && inode !== undefined ? [inode] : [];
  });
}
