const namePattern = /^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/;
const ipv4Pattern = /^\d{1,3}(\.\d{1,3}){3}$/;
const ipv6Pattern = /^\[[0-9a-f:.]{2,45}\]$/;

/**
 * The host of a Host header or a URL's authority: lower case, without port and trailing dot; an IPv6 address keeps its
 * brackets. Undefined for text that is not a host.
 */
export function hostOfAuthority(authority: string): string | undefined {
  const match = /^(\[[^\]]*\]|[^:[\]]*)(?::(\d{1,5}))?$/.exec(authority.toLowerCase());
  if (match === null || Number(match[2] ?? 0) > 65_535) return undefined;
  const host = (match[1] ?? '').replace(/\.$/, '');
  if (host.length > 253) return undefined;
  return namePattern.test(host) || ipv6Pattern.test(host) ? host : undefined;
}

/** Whether a result of `hostOfAuthority` is an IP address. */
export function isAddress(host: string): boolean {
  return ipv4Pattern.test(host) || ipv6Pattern.test(host);
}
