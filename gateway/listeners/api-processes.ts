import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { UpstreamChoice } from '#gateway/routes/choose-upstream.ts';
import { noTraffic, type Upstream } from '#gateway/routes/upstream.ts';
import { reachableSocketPath } from '#shared/net/unix-socket.ts';

/** Where the sockets of the API are. */
export interface ApiSockets {
  readonly directory: string;
  /** Of the only process, in that directory. */
  readonly apiSocket: string;
}

/** The processes of the API that a gateway forwards to. */
export interface ApiProcesses {
  readonly upstreams: UpstreamChoice;
  /** Ends looking for processes. */
  end(): void;
}

const lookMilliseconds = 500;
const ofSeveral = /^api-.+\.sock$/;

/**
 * Finds the processes of the API by their sockets in the gateway's directory, and goes on looking. Requests go to them in turn. One that
 * does not accept a connection, since it was killed, costs a request no more than a try at the next.
 */
export function followApiProcesses({ directory, apiSocket }: ApiSockets): ApiProcesses {
  const only = toUpstream(apiSocket);
  const several = new Map<string, Upstream>();
  let current: readonly Upstream[] = [only];
  let requests = 0;
  const look = (): void => {
    const names = readdirSync(directory);
    for (const name of several.keys()) if (!names.includes(name)) several.delete(name);
    for (const name of names)
      if (ofSeveral.test(name) && !several.has(name)) several.set(name, toUpstream(join(directory, name)));
    current = several.size === 0 || names.includes(basename(apiSocket)) ? [...several.values(), only] : [...several.values()];
  };
  look();
  const looking = setInterval(() => {
    try {
      look();
    } catch {
      // The directory was removed: the gateway is about to end.
    }
  }, lookMilliseconds);
  looking.unref();
  return {
    upstreams: {
      dependsOnVisitor: false,
      choose(tried) {
        const left = tried.length === 0 ? current : current.filter((upstream) => !tried.includes(upstream));
        return left[requests++ % left.length];
      },
      chooseOther: () => undefined,
    },
    end: () => clearInterval(looking),
  };
}

function toUpstream(socket: string): Upstream {
  return { address: { socketPath: reachableSocketPath(socket) }, inFlight: { count: 0 }, traffic: noTraffic(0) };
}
