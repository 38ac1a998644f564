import { createLog, type Log } from '#shared/log.ts';

/** The message that a gateway process sends once to the process that started it (IPC). */
export type GatewayStart =
  | { readonly outcome: 'serving'; readonly httpPort: number; readonly httpsPort: number }
  | { readonly outcome: 'port-taken'; readonly port: number; readonly setting: string }
  | { readonly outcome: 'failed'; readonly message: string };

/** The log of a gateway process: its standard output, which is a file. */
export function createGatewayLog(): Log {
  return createLog('info', (line) => process.stdout.write(`${line}\n`));
}
