import { AppError } from '#shared/errors.ts';
import type { AppRoute } from '#shared/routing/app-route.ts';

const hostPattern = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?)*$/;

/**
 * Checks a route before a router accepts it. Users cannot cause an invalid route; the driver that built it has a bug then.
 * @throws AppError 'internal' that names the fault
 */
export function checkRoute(route: AppRoute): void {
  const fault = findFault(route);
  if (fault === undefined) return;
  throw new AppError('internal', `The route of app ${route.appName} cannot be applied: ${fault}.`);
}

function findFault({ hosts, backends }: AppRoute): string | undefined {
  if (hosts.length === 0) return 'it has no host';
  const badHost = hosts.find((host) => !hostPattern.test(host));
  if (badHost !== undefined) return `${JSON.stringify(badHost)} is not a lower-case host name without port`;
  if (backends.length === 0) return undefined;
  if (backends.some(({ weight }) => !Number.isInteger(weight) || weight < 0)) return 'a weight is not a whole number of percent';
  const total = backends.reduce((sum, { weight }) => sum + weight, 0);
  if (total !== 100) return `its weights add up to ${total}, not 100`;
  if (new Set(backends.map(({ releaseVersion }) => releaseVersion)).size !== backends.length) return 'a release is in it twice';
  const instances = backends.flatMap((backend) => backend.instances);
  const badPort = instances.find(({ port }) => !Number.isInteger(port) || port < 1 || port > 65_535);
  if (badPort !== undefined) return `instance ${badPort.key} has no valid port`;
  return undefined;
}

/**
 * Refuses a route with a host that belongs to another app. Names are unique on the platform, so this is a bug somewhere;
 * it must not send the visitors of one tenant to another.
 * @param ownerOf the route that has the host now
 * @throws AppError 'conflict' that names the host and its app
 */
export function refuseTakenHosts(route: AppRoute, ownerOf: (host: string) => AppRoute | undefined): void {
  for (const host of route.hosts) {
    const owner = ownerOf(host);
    if (owner === undefined || owner.appId === route.appId) continue;
    throw new AppError('conflict', `The host ${host} already belongs to the app ${owner.appName}.`);
  }
}
