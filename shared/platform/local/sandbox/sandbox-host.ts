import { lstat, readlink, realpath } from 'node:fs/promises';
import { findExecutable } from '#shared/files/find-executable.ts';
import type { SandboxBind, SandboxHost } from './sandbox.ts';

/** The files of /etc that are seen inside: for certificates, libraries and time zones. */
const etcPaths = [
  'alternatives', 'ca-certificates', 'ca-certificates.conf', 'gai.conf', 'host.conf', 'ld.so.cache', 'ld.so.conf', 'ld.so.conf.d',
  'localtime', 'mime.types', 'nsswitch.conf', 'pki/ca-trust', 'pki/tls/cert.pem', 'pki/tls/certs', 'pki/tls/openssl.cnf', 'protocols',
  'python3', 'python3.11', 'python3.12', 'python3.13', 'services', 'ssl/certs', 'ssl/openssl.cnf', 'timezone',
]; // biome-ignore format: a list of words
const systemPaths = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];
/** Settings of the operator below /usr. They may contain credentials, as npm's global ones do. */
const settingDirectories = ['/usr/etc', '/usr/local/etc'];
/** Facts about the machine and about others on it that every user may read below /proc, and no app needs. */
const machineFacts = [
  'acpi', 'asound', 'cmdline', 'config.gz', 'diskstats', 'fs', 'interrupts', 'kallsyms', 'key-users', 'keys', 'latency_stats', 'locks',
  'modules', 'partitions', 'sched_debug', 'scsi', 'timer_list',
]; // biome-ignore format: a list of words
const readableByOthers = 0o004;

/** Reads the properties of this host that sandboxes depend on. @returns undefined when bubblewrap is not installed */
export async function readSandboxHost(
  path: string,
  limitedBy: SandboxHost['limitedBy'],
  layerDirectory: string,
): Promise<SandboxHost | undefined> {
  const bwrap = await findExecutable('bwrap', path);
  if (bwrap === undefined) return undefined;
  const uid = process.getuid?.() ?? 0;
  return {
    root: uid === 0,
    uid,
    gid: process.getgid?.() ?? 0,
    bwrap,
    systemDirectories: (await Promise.all(systemPaths.map(readSystemDirectory))).filter((found) => found !== undefined),
    etc: (await Promise.all(etcPaths.map(readEtc))).filter((found) => found !== undefined),
    hidden: await findHidden([...settingDirectories, ...machineFacts.map((name) => `/proc/${name}`)]),
    limitedBy,
    layerDirectory,
  };
}

/** Only what exists can be covered, and each mount costs time at every start: what is closed to other users stays as it is. */
async function findHidden(paths: readonly string[]): Promise<SandboxHost['hidden']> {
  const found = await Promise.all(
    paths.map(async (path) => {
      const facts = await lstat(path).catch(() => undefined);
      return facts === undefined || facts.isSymbolicLink() || (facts.mode & readableByOthers) === 0
        ? []
        : [{ path, isDirectory: facts.isDirectory() }];
    }),
  );
  return found.flat();
}

async function readSystemDirectory(path: string): Promise<{ path: string; linkTo?: string } | undefined> {
  const facts = await lstat(path).catch(() => undefined);
  if (facts === undefined) return undefined;
  return facts.isSymbolicLink() ? { path, linkTo: await readlink(path) } : { path };
}

async function readEtc(name: string): Promise<SandboxBind | undefined> {
  const target = `/etc/${name}`;
  // localtime is often a symlink to where the sandbox does not reach.
  const source = await realpath(target).catch(() => undefined);
  return source === undefined ? undefined : { source, target };
}
