import { trustProxies } from '#gateway/forwarding/client.ts';

/**
 * The address of the client behind the connection's peer, by X-Forwarded-For of proxies that are trusted.
 * @param peer IP address of the other end of the connection
 */
export function createClientAddress(trusted: readonly string[]): (request: Request, peer: string) => string {
  const isTrusted = trustProxies(trusted);
  return (request, peer) => {
    if (!isTrusted(peer)) return peer;
    const forwarded = (request.headers.get('x-forwarded-for') ?? '').split(',').map((address) => address.trim());
    // The first from the right that no trusted proxy added for another.
    return forwarded.findLast((address) => address !== '' && !isTrusted(address)) ?? peer;
  };
}
