import { describe, expect, it } from 'vitest';
import { anyAppInterface } from './network-plan.ts';
import { findUsedBlocks, type HostRoute } from './used-blocks.ts';

describe('the addresses that a host uses', () => {
  const uses = (route: HostRoute, address: string): boolean =>
    findUsedBlocks([route], '10.213.0.0/16', anyAppInterface).check(address);

  it.each<[string, HostRoute]>([
    ['a network of an interface', { dst: '10.213.4.0/24', dev: 'eth1' }],
    ['a network behind a gateway', { dst: '10.213.4.0/24', dev: 'eth1', gateway: '192.168.1.1' }],
    ['an address of its own', { dst: '10.213.4.1', dev: 'eth1' }],
    ['a network of an interface that is larger than the range', { dst: '10.0.0.0/8', dev: 'eth1' }],
  ])('are those of %s', (_, route) => {
    expect(uses(route, '10.213.4.1')).toBe(true);
  });

  it.each<[string, HostRoute]>([
    ['the default route', { dst: 'default', dev: 'eth0', gateway: '192.168.1.1' }],
    ['a route to all private networks', { dst: '10.0.0.0/8', dev: 'eth0', gateway: '192.168.1.1' }],
    ['another network', { dst: '10.214.0.0/16', dev: 'eth0' }],
    ['the network of an app', { dst: '10.213.4.0/30', dev: 'paas0123ab1z' }],
  ])('are not those of %s', (_, route) => {
    expect(uses(route, '10.213.4.1')).toBe(false);
  });
});
