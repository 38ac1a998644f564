import type { Settings } from '#shared/settings/settings.ts';

/** Where things are found from outside, as this platform is set up. */
export interface Addresses {
  /** `ssh://git@host:port/<name>.git`; the port is left out when it is 22. */
  pushUrl(appName: string): string;
  /** `https://<name>.<apps domain>` (SPEC.md §2), with the port when it is not 443. */
  subdomain(appName: string): string;
  /** What a person opens: `subdomain`, or http when that is how the platform itself is reached. */
  webUrl(appName: string): string;
  /** Host name without port. */
  appHost(appName: string): string;
  /** Below which apps have their subdomains. */
  readonly appsDomain: string;
  /** Host name of the platform itself. */
  readonly baseHost: string;
}

/** The addresses that follow from the settings. */
export function createAddresses(
  settings: Pick<Settings, 'baseUrl' | 'appsDomain' | 'httpPort' | 'httpsPort' | 'sshPort'>,
): Addresses {
  const base = new URL(settings.baseUrl);
  const appHost = (appName: string): string => `${appName}.${settings.appsDomain}`;
  const withPort = (host: string, port: number, usual: number): string => (port === usual ? host : `${host}:${port}`);
  const subdomain = (appName: string): string => `https://${withPort(appHost(appName), settings.httpsPort, 443)}`;
  return {
    appsDomain: settings.appsDomain,
    baseHost: base.hostname,
    appHost,
    subdomain,
    pushUrl: (appName) => `ssh://git@${withPort(base.hostname, settings.sshPort, 22)}/${appName}.git`,
    webUrl: (appName) =>
      base.protocol === 'https:' ? subdomain(appName) : `http://${withPort(appHost(appName), settings.httpPort, 80)}`,
  };
}
