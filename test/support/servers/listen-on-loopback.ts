import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { closeServer } from '#deploy/parts/close-server.ts';

/** Where a server of a test listens, by HTTP or HTTPS. */
export interface LoopbackServer {
  readonly port: number;
  /** `127.0.0.1:<port>` */
  readonly host: string;
  /** Ends every connection; resolves when it is closed. */
  close(): Promise<void>;
}

/** Lets a server listen on a free port of the loopback. */
export async function listenOnLoopback(server: Server): Promise<LoopbackServer> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { port, host: `127.0.0.1:${port}`, close: () => closeServer(server) };
}
