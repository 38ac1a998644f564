import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { AppError } from '#shared/errors.ts';
import { isPublicAddress } from '#shared/sources/public-address.ts';

/** An IP address of a host. */
export interface HostAddress {
  address: string;
  family: 4 | 6;
}

/** Returns all addresses of a host name. Rejects for unknown names. */
export type LookUp = (host: string) => Promise<readonly HostAddress[]>;

/** Resolves by the operating system. */
export const systemLookUp: LookUp = async (host) =>
  (await lookup(host, { all: true })).map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));

/** A host name that has no address, now at least. */
export class UnknownHost extends AppError {
  constructor(host: string) {
    super('validation_failed', `The host ${host} could not be resolved. Check the source URL.`);
    this.name = 'UnknownHost';
  }
}

/**
 * Resolves a host to the one address to connect to. Callers must use this address and not resolve again, so that DNS rebinding
 * has no effect. A single private address among several is enough to refuse the host.
 * @param host host name as parsed by `URL`, which normalizes decimal and octal IP addresses
 * @throws AppError validation_failed
 */
export async function resolveHost(host: string, lookUp: LookUp, allowPrivate: boolean): Promise<HostAddress> {
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  const kind = isIP(bare);
  const addresses = kind === 0 ? await lookUp(bare).catch(() => []) : [{ address: bare, family: kind === 6 ? 6 : 4 } as const];
  const [first] = addresses;
  if (first === undefined) throw new UnknownHost(bare);
  if (allowPrivate || addresses.every(({ address }) => isPublicAddress(address))) return first;
  throw new AppError(
    'validation_failed',
    `The host ${bare} is in a private network. Only public hosts are allowed, unless the operator sets PAAS_ALLOW_PRIVATE_SOURCES=true.`,
  );
}
