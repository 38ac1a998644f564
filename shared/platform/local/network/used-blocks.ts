import { BlockList, isIPv4 } from 'node:net';

/** An entry of `ip -json -4 route show table all`, as far as it matters here. */
export interface HostRoute {
  /** 'default', an address, or a network such as '10.1.0.0/16'. */
  readonly dst?: string;
  readonly dev?: string;
  readonly gateway?: string;
}

/**
 * The addresses that the host uses itself: of its interfaces, and networks that its routes lead to. A route by way of a gateway to all of
 * the range, or more, is not counted: the few addresses of an app's network take precedence over it.
 * @param ownInterface the interfaces of apps' networks
 */
export function findUsedBlocks(routes: readonly HostRoute[], range: string, ownInterface: RegExp): BlockList {
  const used = new BlockList();
  const rangeBits = Number(range.split('/')[1]);
  for (const { dst, dev = '', gateway } of routes) {
    const [address = '', bits = '32'] = dst?.split('/') ?? [];
    if (!isIPv4(address) || ownInterface.test(dev)) continue;
    if (gateway !== undefined && Number(bits) <= rangeBits) continue;
    used.addSubnet(address, Number(bits), 'ipv4');
  }
  return used;
}
