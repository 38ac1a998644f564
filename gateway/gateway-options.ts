import { join } from 'node:path';
import { z } from 'zod';

/** Options of the gateway process, given as an argument. They hold no secrets: arguments are in the process list. */
export const gatewayOptionsSchema = z.object({
  /** Absolute. */
  dataDir: z.string().startsWith('/'),
  /** Address to listen on. */
  host: z.string().min(1),
  httpPort: z.number().int().min(0).max(65_535),
  httpsPort: z.number().int().min(0).max(65_535),
  /** Hosts of the API, lower case; `localhost` and IP addresses are as well. The default certificate is for the first. */
  apiHosts: z.array(z.string()).min(1),
  /** The parent domain of the apps' hosts. */
  appsDomain: z.string().min(1),
  /** Addresses and networks of proxies whose X-Forwarded-For, -Proto and -Port are believed. */
  trustedProxies: z.array(z.string()),
  /** Open connections that one source may have. */
  connectionsPerAddress: z.number().int().min(1),
  /** Names one of several gateways of a data directory, which share its ports. Left out: it is the only one. */
  instance: z
    .string()
    .regex(/^[a-z0-9]+$/)
    .exactOptional(),
});

/** See `gatewayOptionsSchema`. */
export type GatewayOptions = Readonly<z.infer<typeof gatewayOptionsSchema>>;

/** The gateway's files in the data directory. Sockets may need `reachableSocketPath`. */
export interface GatewayFiles {
  readonly directory: string;
  readonly routes: string;
  readonly controlSocket: string;
  /** Of the only process of the API. */
  readonly apiSocket: string;
  readonly log: string;
}

/**
 * @param dataDir absolute
 * @param instance see `GatewayOptions`
 */
export function gatewayFiles(dataDir: string, instance?: string): GatewayFiles {
  const directory = join(dataDir, 'gateway');
  return {
    directory,
    routes: join(directory, 'routes.json'),
    controlSocket: join(directory, instance === undefined ? 'control.sock' : `control-${instance}.sock`),
    apiSocket: join(directory, 'api.sock'),
    log: join(directory, 'gateway.log'),
  };
}
