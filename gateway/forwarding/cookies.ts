const domainAttribute = /^\s*domain\s*=\s*"?\.?([^"]*?)\.?"?\s*$/i;

/**
 * The value of a Set-Cookie header without a Domain that includes hosts of the platform, such as the apps' domain: browsers would send
 * the cookie to the apps of others, and let an app replace their cookies. It becomes a cookie of the app's host alone.
 * @param platformDomains the apps' domain and the hosts of the API, lower case
 */
export function confineCookie(value: string, platformDomains: readonly string[]): string {
  if (!/;\s*domain/i.test(value)) return value;
  const isShared = (attribute: string): boolean => {
    const domain = domainAttribute.exec(attribute)?.[1]?.toLowerCase();
    return domain !== undefined && platformDomains.some((platform) => platform === domain || platform.endsWith(`.${domain}`));
  };
  return value
    .split(';')
    .filter((part, index) => index === 0 || !isShared(part))
    .join(';');
}
