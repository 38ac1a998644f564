import { BlockList, isIP } from 'node:net';

/** IPv4 networks that are not public (IANA special-purpose address registry). */
const special = new BlockList();
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16], // with the metadata service of clouds
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const)
  special.addSubnet(network, bits, 'ipv4');

/** The global unicast range of IPv6. Ranges that map or tunnel IPv4 are outside of it or listed in `special6`. */
const global6 = new BlockList();
global6.addSubnet('2000::', 3, 'ipv6');
const special6 = new BlockList();
for (const [network, bits] of [
  ['2001::', 23], // Teredo, benchmarking, ORCHID
  ['2001:db8::', 32],
  ['2002::', 16], // 6to4: any IPv4 address
  ['3fff::', 20],
] as const)
  special6.addSubnet(network, bits, 'ipv6');

/** Whether an IP address (in text form) is public. False for text that is not an address. */
export function isPublicAddress(address: string): boolean {
  const kind = isIP(address);
  if (kind === 4) return !special.check(address, 'ipv4');
  if (kind === 6) return global6.check(address, 'ipv6') && !special6.check(address, 'ipv6');
  return false;
}
