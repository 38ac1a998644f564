import { Resolver as NodeResolver } from 'node:dns/promises';
import type { Resolver } from '#shared/dns/resolver.ts';

/** @param servers `address` or `address:port`; those of the machine when not given */
export function createNodeResolver(servers?: readonly string[]): Resolver {
  const resolver = new NodeResolver({ timeout: 2000, tries: 2 });
  if (servers !== undefined) resolver.setServers(servers);
  return {
    async readTexts(name) {
      try {
        return (await resolver.resolveTxt(name)).map((parts) => parts.join(''));
      } catch {
        // No such name, no such record, no name server: all the same to who looks for a proof.
        return [];
      }
    },
  };
}
