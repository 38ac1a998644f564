import { mkdir } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { getRequestListener } from '@hono/node-server';
import { describePortTaken } from '#deploy/host/port-owner.ts';
import { StartError } from '#deploy/host/start-error.ts';
import { closeServer } from '#deploy/parts/close-server.ts';
import type { Lifetime } from '#deploy/parts/lifetime.ts';
import type { StartOptions } from '#deploy/parts/start-options.ts';
import { systemClock } from '#shared/clock.ts';
import { createSocketFetch } from '#shared/net/socket-fetch.ts';
import { listenOnSocket } from '#shared/net/unix-socket.ts';
import { createCallTokens } from '#shared/remote/call-tokens.ts';
import type { RemoteCaller } from '#shared/remote/remote-calls.ts';
import { createRemoteClient } from '#shared/remote/remote-client.ts';
import { createRemoteServer, type OfferedPort } from '#shared/remote/remote-server.ts';

/** The socket on which the worker of a data directory answers the other processes of the platform. */
function callsSocket(dataDir: string): string {
  return join(dataDir, 'worker', 'calls.sock');
}

export interface OfferOptions {
  masterKey: Uint8Array<ArrayBuffer>;
  ports: Readonly<Record<string, OfferedPort>>;
}

/**
 * Answers the calls of other processes of the platform: on this machine at a socket, on others at PAAS_INTERNAL_PORT.
 * @throws StartError when the port is taken
 */
export async function offerCalls(
  lifetime: Lifetime,
  { masterKey, ports }: OfferOptions,
  { settings, dataDir, log }: Pick<StartOptions, 'settings' | 'dataDir' | 'log'>,
): Promise<void> {
  const tokens = await createCallTokens(masterKey, systemClock);
  const listener = getRequestListener(createRemoteServer({ ports, tokens, log }));
  const answer: RequestListener = (request, response) => void listener(request, response);
  const local = createServer(answer);
  await mkdir(join(dataDir, 'worker'), { recursive: true, mode: 0o700 });
  await listenOnSocket(local, callsSocket(dataDir));
  lifetime.onEnd(() => closeServer(local));

  const { internalPort, host } = settings;
  if (internalPort === undefined) return;
  const server = createServer({ requestTimeout: 30_000, headersTimeout: 10_000 }, answer);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(internalPort, host, resolve);
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    throw new StartError(await describePortTaken(internalPort, 'PAAS_INTERNAL_PORT'));
  }
  lifetime.onEnd(() => closeServer(server));
}

/** Calls the worker: that of the data directory, or the one on another machine that the settings name. */
export async function callWorker(
  { settings, dataDir }: Pick<StartOptions, 'settings' | 'dataDir'>,
  masterKey: Uint8Array<ArrayBuffer>,
): Promise<RemoteCaller> {
  const tokens = await createCallTokens(masterKey, systemClock);
  const { internalUrl } = settings;
  if (internalUrl !== undefined) return createRemoteClient({ baseUrl: internalUrl, tokens });
  return createRemoteClient({ baseUrl: 'http://worker', tokens, fetch: createSocketFetch(callsSocket(dataDir)) });
}
