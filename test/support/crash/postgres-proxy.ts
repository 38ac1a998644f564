import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { reachableSocketPath } from '#shared/net/unix-socket.ts';
import { MessageSplitter } from './postgres-messages.ts';

/**
 * When the connection is cut: before the server receives the commit, once it was sent, or once the server has answered it. The
 * client gets no answer in any case.
 */
export type CutMoment = 'unsent' | 'sent' | 'answered';

/** 'COMMIT' ends a transaction; 'statement' writes outside of one. */
export type CommitKind = 'COMMIT' | 'statement';

export interface PostgresProxy {
  /** The address of the same database through the proxy. */
  proxyUrl(url: URL): URL;
  /** Called at each commit. Undefined lets it pass. */
  decideCut: (kind: CommitKind) => CutMoment | undefined;
  /** Ends every connection, whatever it is doing. @returns how many there were */
  cutAll(): number;
  close(): Promise<void>;
}

const readyForQuery = 'Z';

/** A proxy on 127.0.0.1 in front of a PostgreSQL on a unix socket. It reads enough of the protocol to recognise commits. */
export async function openPostgresProxy(server: URL): Promise<PostgresProxy> {
  const socketPath = reachableSocketPath(`${server.searchParams.get('host')}/.s.PGSQL.${server.port}`);
  const connections = new Set<Socket>();
  const proxy: Pick<PostgresProxy, 'decideCut'> = { decideCut: () => undefined };
  const listener = createServer((client) => {
    const upstream = connect(socketPath);
    client.setNoDelay();
    connections.add(client);
    client.on('close', () => connections.delete(client));
    forward(client, upstream, (kind) => proxy.decideCut(kind));
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  const cutAll = (): number => {
    const count = connections.size;
    for (const client of connections) client.resetAndDestroy();
    return count;
  };
  return Object.assign(proxy, {
    proxyUrl(url: URL) {
      const proxied = new URL(url);
      proxied.searchParams.delete('host');
      proxied.host = `127.0.0.1:${port}`;
      return proxied;
    },
    cutAll,
    async close() {
      cutAll();
      listener.close();
      await once(listener, 'close');
    },
  });
}

function forward(client: Socket, upstream: Socket, decideCut: PostgresProxy['decideCut']): void {
  const requests = new MessageSplitter('startup');
  const answers = new MessageSplitter('typed');
  const statements = new Map<string, string>();
  let running = '';
  let inTransaction = false;
  /** The client gets nothing more. Its connection is cut when the server has answered. */
  let silent = false;

  /** The kind of commit that the message causes; undefined for none. */
  const commitOf = (type: string, body: Buffer): CommitKind | undefined => {
    if (type === 'P') {
      const [name = '', text = ''] = body.toString('utf8').split('\0', 2);
      statements.set(name, text);
    }
    if (type === 'B') running = statements.get(body.toString('utf8').split('\0', 2)[1] ?? '') ?? '';
    if (type !== 'Q' && type !== 'S') return undefined;
    const text = type === 'Q' ? body.toString('utf8') : running;
    if (/^\s*commit\b/i.test(text)) return 'COMMIT';
    return !inTransaction && isWrite(text) ? 'statement' : undefined;
  };

  client.on('data', (chunk: Buffer) => {
    for (const { type, body, bytes } of requests.split(chunk)) {
      if (silent) return;
      const kind = commitOf(type, body);
      const moment = kind === undefined ? undefined : decideCut(kind);
      if (moment === 'unsent') {
        client.resetAndDestroy();
        upstream.destroy();
        return;
      }
      upstream.write(bytes);
      if (moment === 'sent') {
        silent = true;
        client.resetAndDestroy();
        // Not destroyed, so that what was sent arrives.
        upstream.end();
        return;
      }
      silent = moment === 'answered';
    }
  });
  upstream.on('data', (chunk: Buffer) => {
    let ready = false;
    for (const { type, body } of answers.split(chunk)) {
      if (type !== readyForQuery) continue;
      ready = true;
      inTransaction = body.toString('latin1') !== 'I';
    }
    if (!silent) client.write(chunk);
    else if (ready) {
      client.resetAndDestroy();
      upstream.end();
    }
  });
  client.on('error', () => undefined);
  upstream.on('error', () => client.destroy());
  client.on('close', () => upstream.end());
  upstream.on('close', () => client.destroy());
}

/** Core writes by `insert`, `update` and `delete`; graphile-worker by functions and by `with`. */
function isWrite(text: string): boolean {
  return (
    /^\s*(insert|update|delete|with)\b/i.test(text) || /graphile_worker"?\."?(add_job|complete|fail|get_job|force)/i.test(text)
  );
}
