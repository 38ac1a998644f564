import { createServer } from 'node:net';

/** Of `fetch`, which does not connect to it; the only one in the range. */
const refusedPort = 10_080;

/** A loopback port that was free a moment ago, below the range that the kernel gives to outgoing connections. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000);
    if (port !== refusedPort && (await isFree(port))) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '0.0.0.0', () => server.close(() => resolve(true)));
  });
}
