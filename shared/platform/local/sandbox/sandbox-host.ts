import { lstat, readFile, readlink, realpath } from 'node:fs/promises';
import { findExecutable } from '#shared/files/find-executable.ts';
import { ifMissing } from '#shared/files/if-missing.ts';
import { replaceFile } from '#shared/files/replace-file.ts';
import type { SandboxBind, SandboxHost } from './sandbox.ts';

/** The files of /etc that are seen inside: for name resolution, certificates, libraries and time zones. */
const etcPaths = [
  'alternatives', 'ca-certificates', 'ca-certificates.conf', 'gai.conf', 'host.conf', 'ld.so.cache', 'ld.so.conf', 'ld.so.conf.d',
  'localtime', 'mime.types', 'nsswitch.conf', 'pip.conf', 'npmrc', 'pki', 'protocols', 'python3', 'python3.11', 'python3.12', 'python3.13',
  'resolv.conf', 'services', 'ssl/certs', 'ssl/openssl.cnf', 'timezone',
]; // biome-ignore format: a list of words
const systemPaths = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];

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
    etc: [
      ...(await Promise.all(etcPaths.map(readEtc))).filter((found) => found !== undefined),
      { source: await writeHosts(`${layerDirectory}.hosts`), target: '/etc/hosts' },
    ],
    limitedBy,
    layerDirectory,
  };
}

async function readSystemDirectory(path: string): Promise<{ path: string; linkTo?: string } | undefined> {
  const facts = await lstat(path).catch(() => undefined);
  if (facts === undefined) return undefined;
  return facts.isSymbolicLink() ? { path, linkTo: await readlink(path) } : { path };
}

/**
 * The host's /etc/hosts with `localhost` on 127.0.0.1 only: an app that listens on `localhost` must be reachable over IPv4,
 * and many hosts list ::1 first.
 */
export function planHosts(text: string): string {
  const lines = text.split('\n').map((line) => {
    const [address = '', ...names] = (line.split('#')[0] ?? '').trim().split(/\s+/);
    const others = names.filter((name) => name !== 'localhost');
    return others.length === 0 ? '' : `${address} ${others.join(' ')}`;
  });
  return ['127.0.0.1 localhost', ...lines.filter((line) => line !== ''), ''].join('\n');
}

async function writeHosts(file: string): Promise<string> {
  await replaceFile(file, planHosts(await readFile('/etc/hosts', 'utf8').catch(ifMissing(''))), 0o644);
  return file;
}

/** systemd's list of the real name servers, for hosts whose resolver listens on the loopback, which no app reaches. */
const upstreamResolvers = '/run/systemd/resolve/resolv.conf';

async function readEtc(name: string): Promise<SandboxBind | undefined> {
  const target = `/etc/${name}`;
  // resolv.conf and localtime are often symlinks to places that are not seen inside.
  const found = await realpath(target).catch(() => undefined);
  const source =
    name === 'resolv.conf' && (await isLoopbackOnly(target)) ? await realpath(upstreamResolvers).catch(() => found) : found;
  return source === undefined ? undefined : { source, target };
}

async function isLoopbackOnly(file: string): Promise<boolean> {
  const text = await readFile(file, 'utf8').catch(ifMissing(''));
  const servers = [...text.matchAll(/^nameserver\s+(\S+)/gm)].map((match) => match[1] ?? '');
  return servers.length > 0 && servers.every((server) => server.startsWith('127.') || server === '::1');
}
