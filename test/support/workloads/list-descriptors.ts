/** A process of its own that was started with open files: prints its own, then those of a program in its sandbox. */
import { readdirSync, readlinkSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { openSandbox } from '#shared/platform/local/sandbox/open-sandbox.ts';

const [dataDir = ''] = process.argv.slice(2);
const own = readdirSync('/proc/self/fd').map((name) => {
  try {
    return readlinkSync(`/proc/self/fd/${name}`);
  } catch {
    return ''; // that of the listing itself
  }
});
console.log(`own: ${own.join(' ')}`);
const sandbox = await openSandbox({ dataDir, path: process.env['PATH'] ?? '' });
const child = await sandbox.spawn(
  {
    id: `descriptors-${process.pid}`,
    uid: await sandbox.ensureUid('descriptors'),
    argv: ['/bin/sh', '-c', 'ls -l /proc/self/fd | tr "\\n" " "'],
    env: { PATH: '/usr/bin:/bin' },
    cwd: '/',
    mounts: [],
    tmp: { bytes: 1024 * 1024 },
    limits: { memoryBytes: 256 * 1024 * 1024, processes: 64, fileBytes: 1024 * 1024 },
    dieWithParent: true,
  },
  { stdout: 'pipe', stderr: 'pipe' },
);
const [inside] = await Promise.all([text(child.stdout!), text(child.stderr!), child.exited]);
console.log(`inside: ${inside}`);
await sandbox.end(child.record);
