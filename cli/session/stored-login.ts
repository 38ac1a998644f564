import type { CredentialStore, Credentials, Login } from '#cli/session/credentials.ts';
import type { TokenSource } from '#shared/api-client/client.ts';

/** What the platform gives at sign-up, login and refresh. */
export interface GivenTokens {
  readonly access_token: string;
  readonly refresh_token?: string;
  /** Seconds. */
  readonly expires_in: number;
}

/** A little before its end a token counts as expired: clocks differ, requests take time. */
const marginSeconds = 30;

export function toLogin(email: string, tokens: GivenTokens, now: Date): Login {
  return {
    email,
    access_token: tokens.access_token,
    ...(tokens.refresh_token === undefined ? {} : { refresh_token: tokens.refresh_token }),
    expires_at: new Date(now.getTime() + tokens.expires_in * 1000).toISOString(),
  };
}

export function withLogin(credentials: Credentials, host: string, login: Login): Credentials {
  return { current_host: host, hosts: { ...credentials.hosts, [host]: login } };
}

/** `current_host` stays: whoever logs out and in again means the same platform. */
export function withoutLogin(credentials: Credentials, host: string): Credentials {
  return { ...credentials, hosts: Object.fromEntries(Object.entries(credentials.hosts).filter(([name]) => name !== host)) };
}

/** A token given from outside, as PAAS_TOKEN in CI: used as it is. */
export function fixedToken(token: string): TokenSource {
  return { current: () => Promise.resolve(token), renew: () => Promise.resolve(undefined) };
}

/**
 * The stored login at `host`, kept alive by its refresh token. A refresh token works once, and using it twice ends the
 * login everywhere: so it is spent under the lock of the credentials file, by whoever comes first; the others find
 * the new token there.
 * @param refresh undefined when the platform refuses the refresh token
 */
export function storedLogin(
  store: CredentialStore,
  host: string,
  refresh: (refreshToken: string) => Promise<GivenTokens | undefined>,
  now: () => Date,
): TokenSource {
  function isFresh(login: Login): boolean {
    return Date.parse(login.expires_at) - now().getTime() > marginSeconds * 1000;
  }

  async function refreshUnless(isGood: (login: Login) => boolean): Promise<string | undefined> {
    let token: string | undefined;
    await store.update(async (credentials) => {
      const login = credentials.hosts[host];
      if (login === undefined) return undefined;
      if (isGood(login)) {
        token = login.access_token;
        return undefined;
      }
      const given = login.refresh_token === undefined ? undefined : await refresh(login.refresh_token);
      if (given === undefined) return undefined;
      token = given.access_token;
      return { ...credentials, hosts: { ...credentials.hosts, [host]: toLogin(login.email, given, now()) } };
    });
    return token;
  }

  return {
    async current() {
      const login = (await store.read()).hosts[host];
      if (login === undefined) return undefined;
      if (isFresh(login)) return login.access_token;
      // A token past its end is still sent when there is no other: the platform's clock decides, and its answer says what to do.
      return (await refreshUnless(isFresh)) ?? login.access_token;
    },
    renew: (refused) => refreshUnless((login) => login.access_token !== refused && isFresh(login)),
  };
}
