import type { CredentialStore, Credentials, Login } from '#cli/session/credentials.ts';
import type { TokenSource } from '#shared/api-client/client.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';

/** The answer to a signup, login or refresh. */
export interface IssuedTokens {
  readonly access_token: string;
  readonly refresh_token?: string;
  /** Seconds. */
  readonly expires_in: number;
}

/** A token counts as expired this much earlier, because clocks differ and requests take time. */
const marginSeconds = 30;

/** The login to store. @param now when the tokens were issued */
export function toLogin(email: string, tokens: IssuedTokens, now: Date): Login {
  return omitUndefined({
    email,
    access_token: tokens.access_token,
    refresh_token: tokens.refresh_token,
    expires_at: new Date(now.getTime() + tokens.expires_in * 1000).toISOString(),
  });
}

/** Adds a login, and makes its host the default. */
export function withLogin(credentials: Credentials, host: string, login: Login): Credentials {
  return { current_host: host, hosts: { ...credentials.hosts, [host]: login } };
}

/** Removes a login. Its host stays the default: the next login is probably there. */
export function withoutLogin(credentials: Credentials, host: string): Credentials {
  return { ...credentials, hosts: Object.fromEntries(Object.entries(credentials.hosts).filter(([name]) => name !== host)) };
}

/** A token that cannot be renewed, such as PAAS_TOKEN in CI. */
export function fixedToken(token: string): TokenSource {
  return { current: () => Promise.resolve(token), renew: () => Promise.resolve(undefined) };
}

/**
 * The token of the stored login at `host`, renewed by its refresh token. A refresh token works once, and using it twice ends the
 * login everywhere. So it is used under the lock of the credentials file, by the first process that needs it. The others read the
 * new token from the file.
 * @param refresh resolves with undefined when the platform refuses the refresh token
 */
export function storedLogin(
  store: CredentialStore,
  host: string,
  refresh: (refreshToken: string) => Promise<IssuedTokens | undefined>,
  now: () => Date,
): TokenSource {
  function isFresh(login: Login): boolean {
    return Date.parse(login.expires_at) - now().getTime() > marginSeconds * 1000;
  }

  async function refreshUnless(isUsable: (login: Login) => boolean): Promise<string | undefined> {
    let token: string | undefined;
    await store.update(async (credentials) => {
      const login = credentials.hosts[host];
      if (login === undefined) return undefined;
      if (isUsable(login)) {
        token = login.access_token;
        return undefined;
      }
      const issued = login.refresh_token === undefined ? undefined : await refresh(login.refresh_token);
      if (issued === undefined) return undefined;
      token = issued.access_token;
      return { ...credentials, hosts: { ...credentials.hosts, [host]: toLogin(login.email, issued, now()) } };
    });
    return token;
  }

  return {
    async current() {
      const login = (await store.read()).hosts[host];
      if (login === undefined) return undefined;
      if (isFresh(login)) return login.access_token;
      // Without another token the expired one is sent: the clock of the platform decides, and its answer says what to do.
      return (await refreshUnless(isFresh)) ?? login.access_token;
    },
    renew: (refused) => refreshUnless((login) => login.access_token !== refused && isFresh(login)),
  };
}
