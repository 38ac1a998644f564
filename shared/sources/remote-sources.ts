import type { Resolver } from '#shared/dns/resolver.ts';
import { createRemotePort, type RemoteCaller } from '#shared/remote/remote-calls.ts';
import type { OfferedPort } from '#shared/remote/remote-server.ts';
import type { SourceHosts } from '#shared/sources/source-hosts.ts';

const sources = { calls: ['checkAddress', 'listTips', 'createKey'] };
const resolver = { calls: ['readTexts'] };

/** The calls that a process answers which reaches other hosts with guarded addresses. */
export function offerOutside(outside: { sources: SourceHosts; resolver: Resolver }): Record<string, OfferedPort> {
  return {
    sources: { methods: sources, driver: outside.sources },
    resolver: { methods: resolver, driver: outside.resolver },
  };
}

/** Other hosts, as the process that `caller` reaches sees them: it alone guards the addresses. */
export function createRemoteOutside(caller: RemoteCaller): { sources: SourceHosts; resolver: Resolver } {
  return {
    sources: createRemotePort<SourceHosts>(caller, 'sources', sources),
    resolver: createRemotePort<Resolver>(caller, 'resolver', resolver),
  };
}
