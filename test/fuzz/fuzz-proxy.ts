import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface FuzzProxy {
  readonly baseUrl: string;
  /** Answers by status. */
  readonly statuses: ReadonlyMap<number, number>;
  close(): void;
}

export interface FuzzProxyOptions {
  /** Of the platform, on loopback. */
  port: number;
  tenantId: string;
  /** Of owners of that tenant: each has a rate limit of its own. */
  tokens: readonly string[];
  /** What the fuzzer sends as its token. */
  placeholder: string;
  /** Called after an answer, before it is passed on: to put back what the request took away. */
  answered(method: string, path: string, status: number): Promise<void>;
}

/**
 * Stands between the fuzzer and the platform, so that limits of rates are met by nobody and stay as they are: each request
 * comes from another address of loopback, and with a token in the name of another owner.
 */
export async function startFuzzProxy({ port, tenantId, tokens, placeholder, answered }: FuzzProxyOptions): Promise<FuzzProxy> {
  const statuses = new Map<number, number>();
  let count = 0;
  const server = createServer((incoming, outgoing) => {
    count += 1;
    const localAddress = `127.${1 + (count % 250)}.${Math.floor(count / 250) % 250}.${1 + (Math.floor(count / 62_500) % 250)}`;
    const token = tokens[count % tokens.length] ?? '';
    const headers: IncomingMessage['headers'] = { ...incoming.headers, host: `localhost:${port}` };
    if (headers.authorization === `Bearer ${placeholder}`) {
      headers.authorization = `Bearer ${token}`;
      headers['x-paas-tenant'] = tenantId;
    }
    const { method = 'GET', url: path = '/' } = incoming;
    const asked = httpRequest({ host: '127.0.0.1', port, localAddress, method, path, headers, agent: false });
    asked.once('response', (answer) => {
      const status = answer.statusCode ?? 0;
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      void answered(method, path, status).finally(() => {
        outgoing.writeHead(status, answer.rawHeaders);
        answer.pipe(outgoing);
        if (answer.headers['content-type']?.startsWith('text/event-stream') === true) endSoon(answer, outgoing);
      });
    });
    asked.once('error', () => outgoing.destroy());
    incoming.pipe(asked);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    statuses,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A stream that follows would go on for an hour. */
function endSoon(answer: IncomingMessage, outgoing: ServerResponse): void {
  setTimeout(() => {
    outgoing.end();
    answer.destroy();
  }, 300);
}
