/**
 * Port: routes of the gateway on one machine, and the traffic it has counted. The local driver applies routes; the gateway,
 * a process of its own that outlives the control plane, serves them.
 */
import type { AppId } from '#shared/ids.ts';
import type { ReleaseTraffic } from '#shared/platform/traffic.ts';
import type { AppRoute } from '#shared/routing/app-route.ts';

export interface Router {
  /**
   * Replaces the app's route. Once it resolves, every new request follows the new route, which survives a gateway crash.
   * @throws AppError 'conflict' when a host belongs to another app, 'internal' for an invalid route
   */
  applyRoute(route: AppRoute): Promise<void>;
  /** Resolves with whether there was a route. */
  deleteRoute(appId: AppId): Promise<boolean>;
  readRoute(appId: AppId): Promise<AppRoute | undefined>;
  listRoutes(): Promise<readonly AppRoute[]>;
  /** The releases in the app's route. Counts start at the release's first route, and again at zero after a gateway crash. */
  readTraffic(appId: AppId): Promise<readonly ReleaseTraffic[]>;
  /**
   * The latest releases that were in the app's route and no longer are. Their counts grow while requests in flight end.
   * Together with `readTraffic` no request is missed unless an app replaces its release every few seconds.
   */
  readPastTraffic(appId: AppId): Promise<readonly ReleaseTraffic[]>;
  /** The certificate that clients of a host are shown, issued if there is none yet. Undefined for a host without a route. */
  readCertificate(host: string): Promise<{ expiresAt: Date } | undefined>;
  /** Deletes the certificate of a host and its key. Resolves with whether there was one. */
  deleteCertificate(host: string): Promise<boolean>;
  /** Requests and upgraded connections in flight on an instance, whether or not it is still in a route. */
  readInFlight(instanceKey: string): Promise<number>;
}
