import { constants } from 'node:fs';
import { access, lstat, readlink, realpath } from 'node:fs/promises';
import type { SandboxBind, SandboxHost } from './sandbox.ts';

/** What programs look up in /etc to resolve names, trust certificates, find libraries and tell the time. Nothing else of it is shown. */
const etcPaths = [
  'alternatives', 'ca-certificates', 'ca-certificates.conf', 'gai.conf', 'host.conf', 'hosts', 'ld.so.cache', 'ld.so.conf', 'ld.so.conf.d',
  'localtime', 'mime.types', 'nsswitch.conf', 'pip.conf', 'npmrc', 'pki', 'protocols', 'python3', 'python3.11', 'python3.12', 'python3.13',
  'resolv.conf', 'services', 'ssl/certs', 'ssl/openssl.cnf', 'timezone',
]; // biome-ignore format: a list of words
const systemPaths = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];

/** Finds out once what every sandbox here is made of. Undefined when bubblewrap is not installed. */
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
    limitedBy,
    layerDirectory,
  };
}

/** Absolute path of an executable, looked up like a shell does; undefined when there is none. */
export async function findExecutable(name: string, path: string): Promise<string | undefined> {
  for (const directory of path.split(':').filter((part) => part.startsWith('/'))) {
    const candidate = `${directory}/${name}`;
    const usable = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (usable) return candidate;
  }
  return undefined;
}

async function readSystemDirectory(path: string): Promise<{ path: string; linkTo?: string } | undefined> {
  const facts = await lstat(path).catch(() => undefined);
  if (facts === undefined) return undefined;
  return facts.isSymbolicLink() ? { path, linkTo: await readlink(path) } : { path };
}

async function readEtc(name: string): Promise<SandboxBind | undefined> {
  const target = `/etc/${name}`;
  // resolv.conf and localtime are often symlinks to where the sandbox does not reach.
  const source = await realpath(target).catch(() => undefined);
  return source === undefined ? undefined : { source, target };
}
