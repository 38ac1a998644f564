import { join } from 'node:path';
import { z } from 'zod';

/** What the gateway process is told at its start. Nothing in it is secret: it stands in the process list. */
export const gatewayOptionsSchema = z.object({
  /** Absolute. */
  dataDir: z.string().startsWith('/'),
  /** Address to listen on. */
  host: z.string().min(1),
  httpPort: z.number().int().min(0).max(65_535),
  httpsPort: z.number().int().min(0).max(65_535),
  /** Hosts that lead to the API, lower case; addresses and localhost do so anyway. The first is certified by default. */
  apiHosts: z.array(z.string()).min(1),
  /** A host below it that no app has is nobody's. */
  appsDomain: z.string().min(1),
});

export type GatewayOptions = Readonly<z.infer<typeof gatewayOptionsSchema>>;

/** Where things are, below the data directory. Sockets may need `reachableSocketPath`. */
export interface GatewayFiles {
  readonly directory: string;
  readonly routes: string;
  readonly controlSocket: string;
  readonly apiSocket: string;
  readonly log: string;
}

export function gatewayFiles(dataDir: string): GatewayFiles {
  const directory = join(dataDir, 'gateway');
  return {
    directory,
    routes: join(directory, 'routes.json'),
    controlSocket: join(directory, 'control.sock'),
    apiSocket: join(directory, 'api.sock'),
    log: join(directory, 'gateway.log'),
  };
}
