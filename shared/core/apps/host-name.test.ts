import { describe, expect, it } from 'vitest';
import { isNeverPublic, parseHost } from '#shared/core/apps/host-name.ts';

const platform = { appsDomain: 'apps.example.net', baseHost: 'paas.example.net' };

describe('a host name', () => {
  it.each([
    ['www.example.com', 'www.example.com'],
    [' WWW.Example.COM. ', 'www.example.com'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['ＷＷＷ.example.com', 'www.example.com'],
    ['a.b.c.d.example.co.uk', 'a.b.c.d.example.co.uk'],
    ['notapps.example.net', 'notapps.example.net'],
    ['example.net', 'example.net'],
  ])('%j is taken as %s', (text, host) => {
    expect(parseHost(text, platform)).toBe(host);
  });

  it.each([
    '',
    '.',
    'localhost',
    'example',
    '*.example.com',
    'www.*.com',
    'a..example.com',
    '-a.example.com',
    'a-.example.com',
    'under_score.example.com',
    `${'a'.repeat(64)}.example.com`,
    `${'abcdefghi.'.repeat(26)}example.com`,
    '127.0.0.1',
    '0x7f.1',
    '2130706433',
    '1.2.3',
    '[::1]',
    'example.com:8080',
    'https://example.com',
    'example.com/path',
    'user@example.com',
    'ex%61mple.com',
    'exam ple.com',
    'example.com\u0000',
    'exam\u00adple.com',
    'exam\u200bple.com',
    'xn--.example',
    '../../etc/passwd',
    '$(id).example.com',
    'apps.example.net',
    'other.apps.example.net',
    'OTHER.apps.example.net.',
    'paas.example.net',
    'git.paas.example.net',
  ])('%j is refused', (text) => {
    expect(() => parseHost(text, platform)).toThrow(/^The host (must be|is) /);
  });

  it('below localhost is anybody’s on a platform that is at localhost itself', () => {
    const local = { appsDomain: 'apps.localhost', baseHost: 'localhost' };
    expect(parseHost('shop.localhost', local)).toBe('shop.localhost');
    expect(() => parseHost('shop.apps.localhost', local)).toThrow('below apps.localhost');
  });

  it('of a domain that the public DNS never has is known as such, and not one that only looks like it', () => {
    expect(['a.test', 'localhost', 'b.home.arpa', 'c.internal'].every(isNeverPublic)).toBe(true);
    expect(['a.test.com', 'contest', 'localhost.com', 'example.com', 'arpa'].some(isNeverPublic)).toBe(false);
  });
});
