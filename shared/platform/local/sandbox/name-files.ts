import { readFile } from 'node:fs/promises';
import { ifMissing } from '#shared/files/if-missing.ts';
import { readResolvers } from '../network/network-commands.ts';

/** Text of the files by which programs in a sandbox resolve names. */
export interface NameFiles {
  /** /etc/hosts */
  readonly hosts: string;
  /** /etc/resolv.conf */
  readonly resolvers: string;
}

/**
 * Written for each sandbox, since the host's change while the platform runs. Code with a network of its own sees neither names from the
 * host's /etc/hosts nor its search domains: they describe the operator's network.
 * @param sharesNetwork whether the code uses the host's network: then it resolves names as the host does
 */
export async function readNameFiles(sharesNetwork: boolean): Promise<NameFiles> {
  if (!sharesNetwork) return { hosts: planHosts(''), resolvers: planResolvers(await readResolvers()) };
  const [hosts, resolvers] = await Promise.all(
    ['/etc/hosts', '/etc/resolv.conf'].map((file) => readFile(file, 'utf8').catch(ifMissing(''))),
  );
  return { hosts: planHosts(hosts ?? ''), resolvers: resolvers ?? '' };
}

/**
 * Puts `localhost` on 127.0.0.1 only: an app that listens on `localhost` must be reachable over IPv4, and many hosts list ::1 first.
 * `app` is the host name inside.
 */
export function planHosts(text: string): string {
  const lines = text.split('\n').map((line) => {
    const [address = '', ...names] = (line.split('#')[0] ?? '').trim().split(/\s+/);
    const others = names.filter((name) => name !== 'localhost');
    return others.length === 0 ? '' : `${address} ${others.join(' ')}`;
  });
  return ['127.0.0.1 localhost app', ...lines.filter((line) => line !== ''), ''].join('\n');
}

function planResolvers(servers: readonly string[]): string {
  return servers.map((server) => `nameserver ${server}\n`).join('');
}
