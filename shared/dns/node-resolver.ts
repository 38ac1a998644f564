import { Resolver as NodeResolver } from 'node:dns/promises';
import type { Resolver } from '#shared/dns/resolver.ts';

/** Resolves by Node's own DNS client. @param servers `address` or `address:port`; default: the name servers of the machine */
export function createNodeResolver(servers?: readonly string[]): Resolver {
  const resolver = new NodeResolver({ timeout: 2000, tries: 2 });
  if (servers !== undefined) resolver.setServers(servers);
  return {
    async readTexts(name) {
      try {
        return (await resolver.resolveTxt(name)).map((parts) => parts.join(''));
      } catch {
        // An unknown name, no record and no answer mean the same to a caller that looks for a proof.
        return [];
      }
    },
  };
}
