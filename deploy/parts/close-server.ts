import type { Server } from 'node:http';

/** Ends every connection of an HTTP server, and resolves when it is closed. */
export async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
}
