import type { AppId } from '#shared/ids.ts';

/** The hosts of an app, and the instances that serve them. */
export interface AppRoute {
  appId: AppId;
  appName: string;
  /** Lower-case host names without port, at least one. */
  hosts: readonly string[];
  /** Whether a visitor stays with one release and one instance. True when left out. */
  sessionAffinity?: boolean;
  /** Their weights add up to 100. Empty while nothing is deployed. */
  backends: readonly Backend[];
}

/** A release that serves part of an app's traffic. */
export interface Backend {
  releaseVersion: number;
  /** Percent of the traffic, a whole number. One of 0 is only asked for what another release does not have. */
  weight: number;
  /** Visitors are spread over them. */
  instances: readonly BackendInstance[];
}

/** The address of an instance. */
export interface BackendInstance {
  /** Never used again for another instance: requests in flight are counted by it. */
  key: string;
  host: string;
  port: number;
}
