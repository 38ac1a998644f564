import { BlockList, isIP, isIPv6 } from 'node:net';

/** Who sent a request, and how it reached the platform. */
export interface Client {
  /** Without brackets; an IPv4 address never in the form of an IPv6 address. */
  readonly address: string;
  readonly encrypted: boolean;
  /** The port that the client connected to. */
  readonly port: number;
}

/** The headers by which a proxy reports its client; undefined for those that were not sent. */
export interface ForwardedHeaders {
  /** X-Forwarded-For; several headers joined by commas. */
  readonly addresses: string | undefined;
  /** X-Forwarded-Proto */
  readonly protocols: string | undefined;
  /** X-Forwarded-Port */
  readonly ports: string | undefined;
}

/** Whether an address is that of a proxy whose headers are believed. */
export type IsTrusted = (address: string) => boolean;

/** @param proxies addresses, and networks as `10.0.0.0/8` or `2001:db8::/32` */
export function trustProxies(proxies: readonly string[]): IsTrusted {
  const list = new BlockList();
  for (const proxy of proxies) {
    const [address = '', prefix] = proxy.split('/');
    const family = familyOf(address);
    list.addSubnet(address, Number(prefix ?? (family === 'ipv6' ? 128 : 32)), family);
  }
  return (address) => list.check(address, familyOf(address));
}

/**
 * The client of a connection that may be a proxy's. The addresses are read from the end, where each proxy adds the one that it has
 * seen: the first that is no trusted proxy is the client. What a stranger wrote before it is ignored.
 */
export function clientOf(connection: Client, forwarded: ForwardedHeaders, isTrusted: IsTrusted): Client {
  if (!isTrusted(connection.address)) return connection;
  let address = connection.address;
  for (const text of (forwarded.addresses ?? '').split(',').toReversed()) {
    const next = readAddress(text);
    if (next === undefined) break;
    address = next;
    if (!isTrusted(address)) break;
  }
  const protocol = lastOf(forwarded.protocols);
  if (protocol !== 'http' && protocol !== 'https') return { ...connection, address };
  const encrypted = protocol === 'https';
  const port = lastOf(forwarded.ports);
  const isPort = /^\d{1,5}$/.test(port) && Number(port) > 0 && Number(port) < 65_536;
  return { address, encrypted, port: isPort ? Number(port) : encrypted ? 443 : 80 };
}

/** An address as Node reports it, without a zone (`%eth0`) and the form that IPv4 has on a dual-stack socket. */
export function plainAddress(address: string | undefined): string {
  return (address ?? '').replace(/%.*$/, '').replace(/^::ffff:(?=\d+\.)/i, '');
}

/** An address, with or without brackets and port. */
function readAddress(text: string): string | undefined {
  const address = plainAddress(/^\[([^\]]*)\](?::\d+)?$|^([^:]*):\d+$/.exec(text.trim())?.slice(1).join('') ?? text.trim());
  return isIP(address) === 0 ? undefined : address;
}

function lastOf(list: string | undefined): string {
  return (list ?? '').split(',').at(-1)?.trim().toLowerCase() ?? '';
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv6(address) ? 'ipv6' : 'ipv4';
}
