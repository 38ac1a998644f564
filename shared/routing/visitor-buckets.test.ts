import { describe, expect, it } from 'vitest';
import { bucketOfAddress, hash, selectInstance, selectRelease, visitorBuckets } from './visitor-buckets.ts';

const allBuckets = Array.from({ length: visitorBuckets }, (_, bucket) => bucket);
const releases = (weight: number, releaseVersion = 2) => [
  { releaseVersion, weight },
  { releaseVersion: releaseVersion - 1, weight: 100 - weight },
];

describe('the release of a visitor', () => {
  it('is the newest for as many buckets as its weight says', () => {
    for (const weight of [0, 10, 25, 50, 100]) {
      const newest = allBuckets.filter((bucket) => selectRelease(releases(weight), bucket)?.releaseVersion === 2);
      expect(newest.length).toBe((visitorBuckets * weight) / 100);
    }
  });

  it('never goes back to the old one while the weight of the newest rises', () => {
    const weights = Array.from({ length: 101 }, (_, weight) => weight);
    for (const bucket of allBuckets) {
      const seen = weights.map((weight) => selectRelease(releases(weight), bucket)?.releaseVersion ?? 0);
      expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    }
  });

  it('is not the newest for the same visitors first, from one rollout to the next', () => {
    const first = (version: number) =>
      new Set(allBuckets.filter((bucket) => selectRelease(releases(10, version), bucket)?.releaseVersion === version));
    expect(first(2).intersection(first(3)).size).toBe(0);
  });

  it('is none where nothing has a weight', () => {
    expect(selectRelease([{ releaseVersion: 1, weight: 0 }], 5)).toBeUndefined();
    expect(selectRelease([], 5)).toBeUndefined();
  });
});

describe('the instance of a visitor', () => {
  const instances = ['web.1', 'web.2', 'web.3'].map((key) => ({ key, keyHash: hash(key) }));

  it('has a fair share of the buckets', () => {
    const counts = Map.groupBy(allBuckets, (bucket) => selectInstance(instances, bucket)?.key);
    for (const { key } of instances) expect(counts.get(key)?.length).toBeGreaterThan(visitorBuckets / 3 / 1.1);
  });

  it('stays when another one goes', () => {
    const left = instances.slice(0, 2);
    const moved = allBuckets.filter((bucket) => {
      const before = selectInstance(instances, bucket);
      return before !== instances[2] && selectInstance(left, bucket) !== before;
    });
    expect(moved).toEqual([]);
  });

  it('is none where there is none', () => {
    expect(selectInstance([], 1)).toBeUndefined();
  });
});

it('the bucket of an address is that of its /64 network for IPv6, and of IPv4 also when it is mapped', () => {
  expect(bucketOfAddress('2001:db8::1')).toBe(bucketOfAddress('2001:db8::ffff:2'));
  expect(bucketOfAddress('2001:db8::1')).not.toBe(bucketOfAddress('2001:db8:0:1::1'));
  expect(bucketOfAddress('::ffff:192.0.2.7')).toBe(bucketOfAddress('192.0.2.7'));
});
