import { execFile } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { isIPv4 } from 'node:net';
import { promisify } from 'node:util';
import { ifMissing } from '#shared/files/if-missing.ts';
import {
  type InstanceAddresses,
  instancePrefix,
  planInstanceAddresses,
  planInstanceCreation,
  settingsOfApp,
} from './instance-network-plan.ts';
import {
  appInterface,
  type NetworkAddresses,
  planCreation,
  settingScript,
  settingsInside,
  settingsOutside,
} from './network-plan.ts';
import type { HostRoute } from './used-blocks.ts';

const run = promisify(execFile);

/** Runs a command with text on its standard input. @throws Error with what it printed if it fails */
async function runWithInput(command: string, args: readonly string[], input: string): Promise<void> {
  const running = run(command, [...args]);
  running.child.stdin?.end(input);
  await running.catch((error: Error & { stderr?: string }) => {
    throw new Error(error.stderr?.trim() || error.message, { cause: error });
  });
}

/** Creates a network namespace with its interfaces. @throws Error with what the command printed */
export async function createNetwork(addresses: NetworkAddresses): Promise<void> {
  const { host, inside } = planCreation(addresses);
  await runWithInput('ip', ['-batch', '-'], `${host.join('\n')}\n`);
  await runWithInput('ip', ['-n', addresses.namespace, '-batch', '-'], `${inside.join('\n')}\n`);
  for (const { path, value } of settingsOutside(addresses))
    await writeFile(`/proc/sys/${path}`, value).catch(ifMissing(undefined));
  await runWithInput('nsenter', [`--net=/run/netns/${addresses.namespace}`, '/bin/sh', '-s'], settingScript(settingsInside));
}

/** Whether both ends of a network are there. */
export async function networkExists({ namespace, hostInterface }: NetworkAddresses): Promise<boolean> {
  const ends = [run('ip', ['-n', namespace, 'link', 'show', appInterface]), run('ip', ['link', 'show', hostInterface])];
  return (await Promise.allSettled(ends)).every(({ status }) => status === 'fulfilled');
}

/**
 * Removes whatever is left of a network, with those of its instances. The host's interface goes first: the kernel deletes a namespace later
 * than it reports.
 */
export async function removeNetwork(addresses: NetworkAddresses): Promise<void> {
  await run('ip', ['link', 'delete', addresses.hostInterface]).catch(() => undefined);
  const instances = await listInstanceNetworks(addresses);
  const namespaces = [...instances.map((number) => planInstanceAddresses(addresses, number).namespace), addresses.namespace];
  for (const namespace of namespaces) await run('ip', ['netns', 'delete', namespace]).catch(() => undefined);
}

/** Numbers of the networks that instances of an app have or had. */
export async function listInstanceNetworks(app: NetworkAddresses): Promise<readonly number[]> {
  const prefix = instancePrefix(app);
  const names = await readdir('/run/netns').catch(ifMissing([]));
  return names.filter((name) => name.startsWith(prefix)).map((name) => Number(name.slice(prefix.length)));
}

/** Creates the network of an instance. @throws Error with what the command printed */
export async function createInstanceNetwork(app: NetworkAddresses, instance: InstanceAddresses, rules: string): Promise<void> {
  try {
    await runWithInput('/bin/sh', ['-s'], planInstanceCreation(app, instance, rules));
  } catch (error) {
    await removeInstanceNetwork(app, instance);
    throw error;
  }
}

/** Removes whatever is left of the network of an instance; its interface first, as above. */
export async function removeInstanceNetwork(app: NetworkAddresses, { namespace, appEnd }: InstanceAddresses): Promise<void> {
  await run('ip', ['-n', app.namespace, 'link', 'delete', appEnd]).catch(() => undefined);
  await run('ip', ['netns', 'delete', namespace]).catch(() => undefined);
}

/** Prepares an app's network for those of instances. */
export async function prepareForInstances({ namespace }: NetworkAddresses): Promise<void> {
  await runWithInput('nsenter', [`--net=/run/netns/${namespace}`, '/bin/sh', '-s'], settingScript(settingsOfApp));
}

/** Applies nftables rules in one transaction: there is no moment without rules. @param namespace undefined: on the host */
export async function applyRules(rules: string, namespace?: string): Promise<void> {
  if (namespace === undefined) await runWithInput('nft', ['-f', '-'], rules);
  else await runWithInput('nsenter', [`--net=/run/netns/${namespace}`, 'nft', '-f', '-'], rules);
}

/** Deletes a table of rules on the host; harmless if there is none. */
export async function removeTable(table: string): Promise<void> {
  await run('nft', ['delete', 'table', 'inet', table]).catch(() => undefined);
}

/** All routes of the host, which include those to the addresses of its interfaces. */
export async function readRoutes(): Promise<readonly HostRoute[]> {
  const { stdout } = await run('ip', ['-4', '-json', 'route', 'show', 'table', 'all'], { maxBuffer: 64 * 1024 * 1024 });
  return JSON.parse(stdout || '[]') as HostRoute[];
}

/** IPv4 name servers of the host, without those on its loopback, which apps do not reach. */
export async function readResolvers(): Promise<readonly string[]> {
  const files = ['/etc/resolv.conf', '/run/systemd/resolve/resolv.conf'];
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(ifMissing(''))));
  const servers = texts.flatMap((text) => [...text.matchAll(/^nameserver\s+(\S+)/gm)].map((match) => match[1] ?? ''));
  return [...new Set(servers)].filter((server) => isIPv4(server) && !server.startsWith('127.'));
}

/**
 * Enables forwarding on the interfaces with a default route, so that answers reach the apps.
 * @returns the interfaces; none where the host forwards packets anyway
 */
export async function enableForwarding(): Promise<readonly string[]> {
  if ((await readFile('/proc/sys/net/ipv4/ip_forward', 'utf8')).trim() === '1') return [];
  const { stdout } = await run('ip', ['-4', '-json', 'route', 'show', 'default']);
  const names = [...new Set((JSON.parse(stdout || '[]') as { dev?: string }[]).flatMap(({ dev }) => dev ?? []))];
  for (const name of names) await writeFile(`/proc/sys/net/ipv4/conf/${name}/forwarding`, '1');
  return names;
}
