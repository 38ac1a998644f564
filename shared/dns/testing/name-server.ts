import { createSocket } from 'node:dgram';
import { once } from 'node:events';

export interface NameServer {
  /** `address:port` */
  readonly address: string;
  readonly texts: Map<string, readonly string[]>;
  close(): Promise<void>;
}

const txt = 16;

/** A name server on loopback that answers for TXT records, by RFC 1035 and UDP, and knows no other. */
export async function startNameServer(): Promise<NameServer> {
  const texts = new Map<string, readonly string[]>();
  const socket = createSocket('udp4');
  socket.on('message', (query, { port, address }) => socket.send(answer(query, texts), port, address));
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    texts,
    close: async () => {
      socket.close();
      await once(socket, 'close');
    },
  };
}

function answer(query: Buffer, texts: ReadonlyMap<string, readonly string[]>): Buffer {
  let end = 12;
  const labels: string[] = [];
  for (let length = query[end] ?? 0; length > 0; length = query[end] ?? 0) {
    labels.push(query.toString('latin1', end + 1, end + 1 + length));
    end += 1 + length;
  }
  const type = query.readUInt16BE(end + 1);
  const records = type === txt ? texts.get(labels.join('.').toLowerCase()) : undefined;
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  header.writeUInt16BE(records === undefined ? 0x8183 : 0x8180, 2); // a response; no such name, or no error
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(records?.length ?? 0, 6);
  const question = query.subarray(12, end + 5);
  return Buffer.concat([header, question, ...(records ?? []).map(toRecord)]);
}

function toRecord(text: string): Buffer {
  const pieces = text.match(/.{1,255}/gs) ?? [''];
  const data = Buffer.concat(pieces.map((piece) => Buffer.concat([Buffer.of(piece.length), Buffer.from(piece, 'latin1')])));
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc00c, 0); // the name of the question
  head.writeUInt16BE(txt, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(60, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}
