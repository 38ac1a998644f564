import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { listenOnLoopback } from '#test/support/servers/listen-on-loopback.ts';

/** A delivery as the git host sent it, and what the platform answered. */
export interface RelayedDelivery {
  headers: IncomingHttpHeaders;
  body: Buffer;
  status: number;
  answer: { data?: { outcome: string; message: string }; error?: { message: string } };
}

export interface DeliveryRelay {
  /** To be entered at the git host. */
  readonly url: string;
  readonly deliveries: RelayedDelivery[];
  /** Whether deliveries are lost: the git host hears that all is well, and the platform nothing. */
  isLosing: boolean;
  /** Sends one again, under another id if one is given. */
  repeat(delivery: RelayedDelivery, id?: string): Promise<RelayedDelivery>;
  close(): Promise<void>;
}

/** Between a git host and the platform, on loopback: it remembers deliveries, repeats them and loses them. */
export async function startDeliveryRelay(target: string): Promise<DeliveryRelay> {
  const deliveries: RelayedDelivery[] = [];
  const send = async (headers: IncomingHttpHeaders, body: Buffer): Promise<RelayedDelivery> => {
    const { host: _host, connection: _connection, 'content-length': _length, 'accept-encoding': _encoding, ...passed } = headers;
    const answer = await fetch(target, { method: 'POST', body: new Uint8Array(body), headers: passed as Record<string, string> });
    return { headers, body, status: answer.status, answer: (await answer.json()) as RelayedDelivery['answer'] };
  };
  const relay = { isLosing: false };
  const pass = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await buffer(request);
    if (relay.isLosing) return void response.end('{}');
    const delivery = await send(request.headers, body);
    deliveries.push(delivery);
    response.writeHead(delivery.status, { 'content-type': 'application/json' }).end(JSON.stringify(delivery.answer));
  };
  const server = createServer((request, response) => {
    pass(request, response).catch(() => response.destroy());
  });
  const listening = await listenOnLoopback(server);
  return Object.assign(relay, {
    url: `http://${listening.host}/`,
    deliveries,
    repeat: ({ headers, body }: RelayedDelivery, id?: string) =>
      send(id === undefined ? headers : { ...headers, 'x-gitea-delivery': id, 'x-github-delivery': id }, body),
    close: () => listening.close(),
  });
}
