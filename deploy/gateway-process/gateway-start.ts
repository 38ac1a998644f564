import { createLog, type Log } from '#shared/log.ts';

/** What a gateway process tells its starter, once. */
export type GatewayStart =
  | { readonly outcome: 'serving'; readonly httpPort: number; readonly httpsPort: number }
  | { readonly outcome: 'port-taken'; readonly port: number; readonly setting: string }
  | { readonly outcome: 'failed'; readonly message: string };

/** The gateway's output is its log file. */
export function createGatewayLog(): Log {
  return createLog('info', (line) => process.stdout.write(`${line}\n`));
}
