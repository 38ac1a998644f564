import { hash, selectInstance, selectRelease } from '#shared/routing/visitor-buckets.ts';
import { createWeightedRotation } from '#shared/routing/weighted-rotation.ts';
import type { Upstream } from './upstream.ts';

/** How the requests of an app are distributed over its releases and their instances. */
export interface UpstreamChoice {
  /** Whether the choice depends on the visitor. */
  readonly dependsOnVisitor: boolean;
  /**
   * Chooses the next upstream; `tried` are those that could not be reached. Undefined when none is left. After a failure it
   * chooses the other instances of that release, then those of the others.
   * @param bucket of the visitor. Left out: releases in turn by weight, and their instances in turn
   */
  choose(tried: readonly Upstream[], bucket?: number): Upstream | undefined;
  /** An instance of another release that runs. Undefined when there is only one release. */
  chooseOther(upstream: Upstream, bucket: number): Upstream | undefined;
}

/** A release in a route. */
export interface ServedBackend {
  readonly releaseVersion: number;
  readonly weight: number;
  readonly instances: readonly ServedInstance[];
}

/** An instance in a route. */
export interface ServedInstance {
  readonly key: string;
  readonly upstream: Upstream;
}

/** @param sessionAffinity whether a visitor stays with one release and one instance */
export function createUpstreamChoice(backends: readonly ServedBackend[], sessionAffinity: boolean): UpstreamChoice {
  const newestFirst = backends
    .map((backend) => ({
      ...backend,
      instances: backend.instances.map((instance) => ({ ...instance, keyHash: hash(instance.key) })),
    }))
    .toSorted((one, other) => other.releaseVersion - one.releaseVersion);
  const all = newestFirst.flatMap(({ instances }) => instances.map(({ upstream }) => upstream));
  const rotation = createWeightedRotation(newestFirst);
  let requests = 0;

  const chooseFirst = (bucket: number | undefined): Upstream | undefined => {
    const release = bucket === undefined ? rotation.next() : selectRelease(newestFirst, bucket);
    const instances = release?.instances ?? [];
    const instance =
      bucket === undefined ? instances[requests++ % Math.max(instances.length, 1)] : selectInstance(instances, bucket);
    return instance?.upstream;
  };

  return {
    dependsOnVisitor: sessionAffinity && all.length > 1,
    choose(tried, bucket) {
      const last = tried.at(-1);
      const first = last === undefined ? chooseFirst(bucket) : undefined;
      if (first !== undefined) return first;
      const left = all.filter((upstream) => !tried.includes(upstream));
      return left.find((upstream) => upstream.traffic === last?.traffic) ?? left[0];
    },
    chooseOther({ traffic }, bucket) {
      const other = newestFirst.find(({ instances }) => instances[0] !== undefined && instances[0].upstream.traffic !== traffic);
      return other && selectInstance(other.instances, bucket)?.upstream;
    },
  };
}
