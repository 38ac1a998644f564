import { clientOf, plainAddress, trustProxies } from '#gateway/forwarding/client.ts';

/**
 * The address of the client behind the connection's peer, by X-Forwarded-For of proxies that are trusted.
 * @param peer IP address of the other end of the connection
 */
export function createClientAddress(trusted: readonly string[]): (request: Request, peer: string) => string {
  const isTrusted = trustProxies(trusted);
  return (request, peer) => {
    const connection = { address: plainAddress(peer), encrypted: false, port: 0 };
    const addresses = request.headers.get('x-forwarded-for') ?? undefined;
    return clientOf(connection, { addresses, protocols: undefined, ports: undefined }, isTrusted).address;
  };
}
