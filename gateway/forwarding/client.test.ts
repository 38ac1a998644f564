import { describe, expect, it } from 'vitest';
import { type Client, clientOf, plainAddress, trustProxies } from './client.ts';

const connection: Client = { address: '10.0.0.1', encrypted: false, port: 8080 };
const none = { addresses: undefined, protocols: undefined, ports: undefined };
const isTrusted = trustProxies(['10.0.0.0/8', '2001:db8:1::/48', '192.0.2.1']);

describe('the client behind trusted proxies', () => {
  it.each([
    ['the address that the proxy has seen', '203.0.113.7', '203.0.113.7'],
    ['not what the client wrote before it', '198.51.100.1, 203.0.113.7', '203.0.113.7'],
    ['the first address that is no trusted proxy', '198.51.100.1, 203.0.113.7, 192.0.2.1, 2001:db8:1::5', '203.0.113.7'],
    ['the first proxy, if there are only proxies', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['an IPv6 address', '2001:db8:2::7', '2001:db8:2::7'],
    ['an address with port', '203.0.113.7:4711', '203.0.113.7'],
    ['an IPv6 address with port', '[2001:db8:2::7]:4711', '2001:db8:2::7'],
    ['an IPv4 address in IPv6 form', '::ffff:203.0.113.7', '203.0.113.7'],
    ['the proxy, if it names no address', 'unknown', '10.0.0.1'],
    ['the last address before something else', '203.0.113.7, <script>, 10.0.0.2', '10.0.0.2'],
    ['an address without its zone', 'fe80::1%eth0', 'fe80::1'],
    ['the proxy without the header', undefined, '10.0.0.1'],
  ])('is %s', (_, addresses, address) => {
    expect(clientOf(connection, { ...none, addresses }, isTrusted).address).toBe(address);
  });

  it.each([
    ['https', undefined, { encrypted: true, port: 443 }],
    ['http', undefined, { encrypted: false, port: 80 }],
    ['HTTPS', '8443', { encrypted: true, port: 8443 }],
    ['http, https', 'a, 4443', { encrypted: true, port: 4443 }],
    ['https', '70000', { encrypted: true, port: 443 }],
    ['gopher', '1', { encrypted: false, port: 8080 }],
    [undefined, '1', { encrypted: false, port: 8080 }],
  ])('used %s on port %s', (protocols, ports, expected) => {
    expect(clientOf(connection, { ...none, protocols, ports }, isTrusted)).toMatchObject(expected);
  });

  it('is nobody if the connection is closed already', () => {
    for (const address of [undefined, '', 'fe80::1%eth0', '::ffff:203.0.113.9', 'text'])
      expect(isTrusted(plainAddress(address))).toBe(false);
    expect(isTrusted(plainAddress('::ffff:10.1.1.1'))).toBe(true);
  });

  it('is the peer, if that is no trusted proxy or none is trusted', () => {
    const forged = { addresses: '198.51.100.1', protocols: 'https', ports: '443' };
    const stranger = { ...connection, address: '203.0.113.9' };
    expect(clientOf(stranger, forged, isTrusted)).toBe(stranger);
    expect(clientOf(connection, forged, trustProxies([]))).toBe(connection);
  });
});
