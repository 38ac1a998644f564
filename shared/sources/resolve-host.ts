import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { AppError } from '#shared/errors.ts';
import { isPublicAddress } from '#shared/sources/public-address.ts';

export interface HostAddress {
  address: string;
  family: 4 | 6;
}

/** All addresses of a host name. */
export type LookUp = (host: string) => Promise<readonly HostAddress[]>;

export const systemLookUp: LookUp = async (host) =>
  (await lookup(host, { all: true })).map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));

/**
 * The address to connect to, and no other after it: a name that answers otherwise the second time leads nowhere. One
 * private address among several is enough to refuse.
 * @param host as a URL has it, so that decimal and octal forms are written out already
 * @throws AppError validation_failed
 */
export async function resolveHost(host: string, lookUp: LookUp, allowPrivate: boolean): Promise<HostAddress> {
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  const kind = isIP(bare);
  const addresses = kind === 0 ? await lookUp(bare).catch(() => []) : [{ address: bare, family: kind === 6 ? 6 : 4 } as const];
  const [first] = addresses;
  if (first === undefined)
    throw new AppError('validation_failed', `The host ${bare} is not known. Check the address of the source.`);
  if (allowPrivate || addresses.every(({ address }) => isPublicAddress(address))) return first;
  throw new AppError(
    'validation_failed',
    `The host ${bare} is in a private network, and sources are fetched from public ones only. The operator may allow it: PAAS_ALLOW_PRIVATE_SOURCES=true.`,
  );
}
