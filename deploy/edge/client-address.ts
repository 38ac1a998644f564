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

/** Of a request that a worker gets: facts about its connection, from Cloudflare's network or from workerd. */
interface WorkerRequest extends Request {
  readonly cf?: { readonly clientIp?: unknown };
}

/**
 * The address of the client of a worker. workerd names the connection's peer (`cf.clientIp`), and passes on whatever headers the client
 * sent. Cloudflare's network names none, and sets CF-Connecting-IP itself.
 */
export function createWorkerClientAddress(trusted: readonly string[]): (request: WorkerRequest) => string {
  const addressOf = createClientAddress(trusted);
  return (request) => {
    if (request.cf === undefined) return 'unknown';
    const { clientIp } = request.cf;
    if (typeof clientIp !== 'string') return request.headers.get('cf-connecting-ip') ?? 'unknown';
    // '127.0.0.1:4711' or '[::1]:4711'.
    return addressOf(request, clientIp.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1'));
  };
}
