import { describe, expect, it } from 'vitest';
import { sourceKey } from '#shared/rate-limits/source-key.ts';

describe('the key of a source address', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::FFFF:cb00:7107', '203.0.113.7'],
    ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
    ['2001:db8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:2::/64'],
    ['[2001:DB8:1:2::1]', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['', 'unknown'],
    ['203.0.113.999', 'unknown'],
    ['203.0.113.07', 'unknown'],
    ['1:2:3:4:5:6:7:8:9', 'unknown'],
    ['1:2:3', 'unknown'],
    ['1::2::3', 'unknown'],
    ["'; drop table", 'unknown'],
  ])('%s counts as %s', (address, key) => {
    expect(sourceKey(address)).toBe(key);
  });

  it('puts neighbours of a /64 under one key and other networks under another', () => {
    expect(sourceKey('2001:db8:1:2::1')).toBe(sourceKey('2001:db8:1:2:9:9:9:9'));
    expect(sourceKey('2001:db8:1:2::1')).not.toBe(sourceKey('2001:db8:1:3::1'));
  });
});
