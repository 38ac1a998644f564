const namePattern = /^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/;
const ipv4Pattern = /^\d{1,3}(\.\d{1,3}){3}$/;
const ipv6Pattern = /^\[[0-9a-f:.]{2,45}\]$/;

/**
 * The host of a Host header or of a URL's authority: lower case, without port and trailing dot; IPv6 keeps its brackets.
 * Undefined when it is no host at all.
 */
export function hostOfAuthority(authority: string): string | undefined {
  const match = /^(\[[^\]]*\]|[^:[\]]*)(?::(\d{1,5}))?$/.exec(authority.toLowerCase());
  if (match === null || Number(match[2] ?? 0) > 65_535) return undefined;
  const host = (match[1] ?? '').replace(/\.$/, '');
  if (host.length > 253) return undefined;
  return namePattern.test(host) || ipv6Pattern.test(host) ? host : undefined;
}

/** Whether `hostOfAuthority` gave an address and not a name. */
export function isAddress(host: string): boolean {
  return ipv4Pattern.test(host) || ipv6Pattern.test(host);
}
