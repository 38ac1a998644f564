/**
 * What the gateway serves and what it saw. The local driver writes routes; the gateway (its own process, which outlives
 * the control plane) follows them.
 */
import type { AppId } from '#shared/ids.ts';

export interface AppRoute {
  appId: AppId;
  appName: string;
  /** Lower-case host names without port. */
  hosts: readonly string[];
  /** Weights add up to 100, or the list is empty: nothing deployed yet. */
  backends: readonly Backend[];
}

export interface Backend {
  releaseVersion: number;
  weight: number;
  instances: readonly BackendInstance[];
}

export interface BackendInstance {
  /** Unique among all instances that ever were: in-flight counts are kept by it. */
  key: string;
  host: string;
  port: number;
}

/** Counted from the first route of the release on; begins anew at zero only when a gateway crashed. */
export interface ReleaseTraffic {
  releaseVersion: number;
  requests: number;
  /** Answers of 500 and above, and upstream failures. */
  errors: number;
  /** Sum of times to the last byte, milliseconds. */
  totalMilliseconds: number;
  /** Requests by that time: how many in each bucket of latencies.ts. */
  latencies: readonly number[];
}

export interface Router {
  /** Replaces the app's route. When it resolves every new request follows the new one, and it survives a gateway crash. */
  applyRoute(route: AppRoute): Promise<void>;
  /** False when there was none. */
  deleteRoute(appId: AppId): Promise<boolean>;
  readRoute(appId: AppId): Promise<AppRoute | undefined>;
  listRoutes(): Promise<readonly AppRoute[]>;
  readTraffic(appId: AppId): Promise<readonly ReleaseTraffic[]>;
  /**
   * Of the latest releases that had a route of the app and have none now. It still grows while what they had begun to
   * answer ends; together with `readTraffic` it misses no request of an app that lets a release go every few seconds.
   */
  readPastTraffic(appId: AppId): Promise<readonly ReleaseTraffic[]>;
  /** The certificate that visitors of a host are shown, made when there is none yet. Undefined for a host without route. */
  readCertificate(host: string): Promise<{ expiresAt: Date } | undefined>;
  /** Requests and upgraded connections in flight on an instance, whether or not it still has a route. */
  readInFlight(instanceKey: string): Promise<number>;
}
