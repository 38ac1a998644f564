/**
 * How visitors are spread over the releases and instances of an app. Each visitor is in one of 10,000 buckets: few enough that a
 * bucket identifies nobody, enough to split traffic by percent. The choice is a pure function of the bucket and the route.
 */
import { sourceKey } from '#shared/rate-limits/source-key.ts';

/** Number of buckets. */
export const visitorBuckets = 10_000;

/** Moves the boundaries from release to release, so that not the same visitors are the first each time. */
const shiftPerRelease = 3571;

/** The bucket of a client address: one for an IPv4 address, or for a /64 network of IPv6. */
export function bucketOfAddress(address: string): number {
  return hash(sourceKey(address)) % visitorBuckets;
}

/**
 * The release of a visitor. The newest gets the buckets below its weight, the older ones those above, so that no visitor goes back
 * while the weight of the newest rises. Undefined when no release has a weight above 0.
 */
export function selectRelease<Release extends { readonly releaseVersion: number; readonly weight: number }>(
  newestFirst: readonly Release[],
  bucket: number,
): Release | undefined {
  const shift = ((newestFirst[0]?.releaseVersion ?? 0) * shiftPerRelease) % visitorBuckets;
  const percent = (((bucket + shift) % visitorBuckets) * 100) / visitorBuckets;
  let below = 0;
  return newestFirst.find(({ weight }) => {
    below += weight;
    return percent < below;
  });
}

/**
 * The instance of a visitor by rendezvous hashing: when instances come or go, only visitors of those instances move.
 * Undefined when there is none.
 */
export function selectInstance<Instance extends { readonly keyHash: number }>(
  instances: readonly Instance[],
  bucket: number,
): Instance | undefined {
  let best = instances[0];
  if (instances.length < 2) return best;
  let highest = -1;
  for (const instance of instances) {
    const score = mix(instance.keyHash ^ Math.imul(bucket + 1, 0x9e3779b1));
    if (score <= highest) continue;
    highest = score;
    best = instance;
  }
  return best;
}

/** A hash of 32 bits without a sign. */
export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  return mix(value);
}

/** Spreads the bits of a number: the last step of MurmurHash3. */
function mix(value: number): number {
  let mixed = value ^ (value >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
