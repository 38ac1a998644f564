import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { MessageSplitter } from './postgres-messages.ts';

/**
 * How a connection ends around a COMMIT: before the server got it, after the server got it, or after the server answered
 * it. The client is told nothing in either case.
 */
export type CutWay = 'unsent' | 'sent' | 'answered';

/** 'COMMIT' ends a transaction; 'statement' is one that changes something by itself. */
export type CommitKind = 'COMMIT' | 'statement';

export interface CommitCutter {
  /** The address of the same database by way of the cutter. */
  reach(url: URL): URL;
  /** Asked at each commit whether, and how, it is cut; undefined lets it pass. */
  judge: (kind: CommitKind) => CutWay | undefined;
  /** Ends every connection that there is, in the middle of whatever it does. @returns how many there were */
  cutAll(): number;
  close(): Promise<void>;
}

const readyForQuery = 'Z';

/** A proxy on 127.0.0.1 before a PostgreSQL there. It speaks enough of the protocol to see commits go by. */
export async function openCommitCutter(server: URL): Promise<CommitCutter> {
  const open = new Set<Socket>();
  const cutter: Pick<CommitCutter, 'judge'> = { judge: () => undefined };
  const listener = createServer((client) => {
    const upstream = connect(Number(server.port), server.hostname);
    client.setNoDelay();
    upstream.setNoDelay();
    open.add(client);
    client.on('close', () => open.delete(client));
    carry(client, upstream, (kind) => cutter.judge(kind));
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  const cutAll = (): number => {
    const count = open.size;
    for (const client of open) client.resetAndDestroy();
    return count;
  };
  return Object.assign(cutter, {
    reach(url: URL) {
      const there = new URL(url);
      there.host = `127.0.0.1:${port}`;
      return there;
    },
    cutAll,
    async close() {
      cutAll();
      listener.close();
      await once(listener, 'close');
    },
  });
}

function carry(client: Socket, upstream: Socket, judge: CommitCutter['judge']): void {
  const asked = new MessageSplitter('startup');
  const answers = new MessageSplitter('typed');
  const statements = new Map<string, string>();
  let running = '';
  let inTransaction = false;
  /** The client hears nothing more; it is let go when the server has answered. */
  let holding = false;

  /** What the message makes the server commit. */
  const commitOf = (type: string, body: Buffer): CommitKind | undefined => {
    if (type === 'P') {
      const [name = '', text = ''] = body.toString('utf8').split('\0', 2);
      statements.set(name, text);
    }
    if (type === 'B') running = statements.get(body.toString('utf8').split('\0', 2)[1] ?? '') ?? '';
    if (type !== 'Q' && type !== 'S') return undefined;
    const text = type === 'Q' ? body.toString('utf8') : running;
    if (/^\s*commit\b/i.test(text)) return 'COMMIT';
    return !inTransaction && changesSomething(text) ? 'statement' : undefined;
  };

  client.on('data', (chunk: Buffer) => {
    for (const { type, body, bytes } of asked.split(chunk)) {
      if (holding) return;
      const kind = commitOf(type, body);
      const way = kind === undefined ? undefined : judge(kind);
      if (way === 'unsent') {
        client.resetAndDestroy();
        upstream.destroy();
        return;
      }
      upstream.write(bytes);
      if (way === 'sent') {
        holding = true;
        client.resetAndDestroy();
        // Not destroyed: what was sent arrives.
        upstream.end();
        return;
      }
      holding = way === 'answered';
    }
  });
  upstream.on('data', (chunk: Buffer) => {
    let ready = false;
    for (const { type, body } of answers.split(chunk)) {
      if (type !== readyForQuery) continue;
      ready = true;
      inTransaction = body.toString('latin1') !== 'I';
    }
    if (!holding) client.write(chunk);
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

/** Ours write by `insert`, `update` and `delete`; graphile-worker by functions and by `with`. */
function changesSomething(text: string): boolean {
  return (
    /^\s*(insert|update|delete|with)\b/i.test(text) || /graphile_worker"?\."?(add_job|complete|fail|get_job|force)/i.test(text)
  );
}
