import { BlockList, isIP, isIPv6 } from 'node:net';

/** The names for which an authority may issue certificates (RFC 5280 §4.2.1.10). */
export interface PermittedNames {
  /** Lower case. A domain includes everything below it. */
  readonly domains: readonly string[];
  readonly networks: readonly Network[];
}

interface Network {
  readonly address: string;
  /** Bits of the prefix. */
  readonly prefix: number;
}

/** @param hosts names or addresses without brackets. The loopback is added. */
export function permittedNames(hosts: readonly string[]): PermittedNames {
  const own = [...new Set(hosts)].sort();
  return {
    domains: own.filter((host) => isIP(host) === 0),
    networks: [
      { address: '127.0.0.0', prefix: 8 },
      { address: '::1', prefix: 128 },
      ...own
        .filter((host) => isIP(host) !== 0 && !isLoopback(host))
        .map((address) => ({ address, prefix: isIPv6(address) ? 128 : 32 })),
    ],
  };
}

/** Whether an address is one of this machine only. */
export function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.');
}

/** @param host a name or an address without brackets */
export function isPermitted({ domains, networks }: PermittedNames, host: string): boolean {
  if (isIP(host) === 0) return domains.some((domain) => host === domain || host.endsWith(`.${domain}`));
  const list = new BlockList();
  for (const { address, prefix } of networks) list.addSubnet(address, prefix, familyOf(address));
  return list.check(host, familyOf(host));
}

/** The value of the extension nameConstraints in DER. */
export function encodeNameConstraints({ domains, networks }: PermittedNames): Buffer<ArrayBuffer> {
  const subtree = (tag: number, name: Buffer): Buffer => encode(0x30, encode(tag, name));
  const subtrees = [
    ...domains.map((domain) => subtree(0x82, Buffer.from(domain, 'ascii'))),
    ...networks.map(({ address, prefix }) => {
      const bytes = bytesOf(address);
      return subtree(0x87, Buffer.concat([bytes, maskOf(prefix, bytes.length)]));
    }),
  ];
  return encode(0x30, encode(0xa0, Buffer.concat(subtrees)));
}

/** An element of DER. */
function encode(tag: number, content: Buffer): Buffer<ArrayBuffer> {
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv6(address) ? 'ipv6' : 'ipv4';
}

function bytesOf(address: string): Buffer {
  if (!isIPv6(address)) return Buffer.from(address.split('.').map(Number));
  // A URL has every IPv6 address in one form: groups of hex digits and at most one `::`.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const groups = (text: string): string[] => text.split(':').filter((group) => group !== '');
  const [left, right] = [groups(head), groups(tail ?? '')];
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  return Buffer.from([...left, ...zeros, ...right].map((group) => group.padStart(4, '0')).join(''), 'hex');
}

function maskOf(prefix: number, bytes: number): Buffer {
  return Buffer.from(
    Array.from({ length: bytes }, (_, index) => (0xff00 >> Math.min(8, Math.max(0, prefix - index * 8))) & 0xff),
  );
}
