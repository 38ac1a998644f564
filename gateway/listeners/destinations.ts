import type { ForwardFailure } from '#gateway/forwarding/forward-request.ts';
import type { ForwardTimeouts } from '#gateway/forwarding/forward-timeouts.ts';
import { isAddress } from '#gateway/forwarding/host.ts';
import type { UpstreamChoice } from '#gateway/routes/choose-upstream.ts';
import type { RouteTable } from '#gateway/routes/route-table.ts';
import {
  apiOverloaded,
  apiUnavailable,
  appOverloaded,
  connectionClosed,
  type ErrorResponse,
  noSuchApp,
  noSuchHost,
  notDeployed,
  notRunning,
  responseTimeout,
} from './error-responses.ts';

/** Where requests for a host are forwarded to. */
export interface Destination {
  /** The app's id, or 'api'. */
  readonly key: string;
  /** The response while it has more than its share of the gateway's connections. */
  readonly overloaded: () => ErrorResponse;
  readonly upstreams: UpstreamChoice;
  /** The response when forwarding failed. */
  readonly errorResponse: (failure: ForwardFailure) => ErrorResponse;
}

/** Finds the destinations of hosts. */
export interface Destinations {
  /** @param host as `hostOfAuthority` returns it */
  find(host: string): Destination | ErrorResponse;
  /** Whether requests for the host are forwarded to the API. @param host as for `find` */
  isApi(host: string): boolean;
}

export interface DestinationsOptions {
  readonly table: RouteTable;
  /** Lower case. `localhost` and IP addresses belong to the API as well. */
  readonly apiHosts: ReadonlySet<string>;
  readonly appsDomain: string;
  /** The processes of the API. */
  readonly api: UpstreamChoice;
  readonly timeouts: Pick<ForwardTimeouts, 'responseMilliseconds'>;
}

/** Looks a host up in the route table first, then among the hosts of the API. */
export function createDestinations(options: DestinationsOptions): Destinations {
  const { table, apiHosts, appsDomain, api, timeouts } = options;
  const toApi: Destination = { key: 'api', upstreams: api, errorResponse: () => apiUnavailable, overloaded: () => apiOverloaded };
  const isApiHost = (host: string): boolean => apiHosts.has(host) || host === 'localhost' || isAddress(host);

  return {
    find(host) {
      const app = table.findByHost(host);
      if (app === undefined) {
        if (isApiHost(host)) return toApi;
        return host.endsWith(`.${appsDomain}`) || host === appsDomain ? noSuchApp(host) : noSuchHost(host);
      }
      const { appName, backends } = app.route;
      if (backends.length === 0) return notDeployed(appName);
      const errorResponse = (failure: ForwardFailure): ErrorResponse => {
        if (failure === 'unreachable') return notRunning(appName);
        return failure === 'timeout' ? responseTimeout(appName, timeouts.responseMilliseconds / 1000) : connectionClosed(appName);
      };
      return { key: app.route.appId, upstreams: app.upstreams, errorResponse, overloaded: () => appOverloaded(appName) };
    },
    isApi: (host) => table.findByHost(host) === undefined && isApiHost(host),
  };
}
