import type { Connection } from 'ssh2';

/**
 * The one look behind ssh2's interface. From a key exchange's first message to its last, ssh2 queues what is written,
 * without a bound and without telling; whoever writes much must therefore know.
 */
export function isExchangingKeys(client: Connection): boolean {
  const { _protocol: protocol } = client as unknown as { readonly _protocol: { readonly _kexinit?: unknown } };
  return protocol._kexinit !== undefined;
}
