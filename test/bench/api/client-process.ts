/**
 * The client of the benchmark, in a process of its own: raw sockets, and of each response no more than its status and length are read.
 * A real client would take half of the machine, and hide how much the server takes.
 */
import { connect, type Socket } from 'node:net';

/** What the process is sent. */
export interface ClientOrder {
  socketPath: string;
  /** Whole HTTP requests without bodies. */
  requests: readonly string[];
}

/** What it answers: the time of each request in milliseconds, and of all together; or what went wrong. */
export type ClientResult = { seconds: number; times: number[] } | { error: string };

const connections = 16;
const endOfHead = Buffer.from('\r\n\r\n');
const lastChunk = Buffer.from('0\r\n\r\n');

/** Sends requests from the queue over one connection, one after the other. */
function work(socket: Socket, queue: Iterator<Buffer>, times: number[]): Promise<void> {
  return new Promise((resolve, reject) => {
    let received: Buffer = Buffer.alloc(0);
    let sentAt = 0;
    const send = (): void => {
      const next = queue.next();
      if (next.done === true) {
        socket.end();
        return resolve();
      }
      sentAt = performance.now();
      socket.write(next.value);
    };
    socket.on('data', (chunk: Buffer) => {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
      const head = received.indexOf(endOfHead);
      if (head === -1) return;
      const text = received.toString('latin1', 0, head);
      const length = /\r\ncontent-length: (\d+)/i.exec(text)?.[1];
      const body = head + endOfHead.length;
      const complete =
        length === undefined ? received.subarray(-lastChunk.length).equals(lastChunk) : received.length >= body + Number(length);
      if (!complete) return;
      times.push(performance.now() - sentAt);
      if (!text.startsWith('HTTP/1.1 200')) return reject(new Error(received.toString()));
      received = Buffer.alloc(0);
      send();
    });
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('The server closed the connection.')));
    socket.once('connect', send);
  });
}

async function measure({ socketPath, requests }: ClientOrder): Promise<ClientResult> {
  const queue = requests.map((text) => Buffer.from(text)).values();
  const times: number[] = [];
  const began = performance.now();
  const sockets = Array.from({ length: connections }, () => connect(socketPath));
  try {
    await Promise.all(sockets.map((socket) => work(socket, queue, times)));
    return { seconds: (performance.now() - began) / 1000, times };
  } catch (error) {
    return { error: String(error) };
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}

process.on('message', (order: ClientOrder) => {
  void measure(order).then((result) => process.send?.(result));
});
