/**
 * The main of the gateway process: `gateway.ts <options as JSON> <version>`. The control plane starts it detached, and it
 * outlives the control plane. It logs to standard output, and reports once over IPC how its start went.
 */
import { existsSync } from 'node:fs';
import { createGatewayLog, type GatewayStart } from '#deploy/gateway-process/gateway-start.ts';
import { type Gateway, type Handover, startGateway } from '#gateway/gateway.ts';
import { type GatewayOptions, gatewayFiles, gatewayOptionsSchema } from '#gateway/gateway-options.ts';
import { PortTakenError } from '#gateway/listeners/http-servers.ts';
import { AppError } from '#shared/errors.ts';
import { callGateway } from '#shared/routing/call-gateway.ts';

const log = createGatewayLog();
const options = gatewayOptionsSchema.parse(JSON.parse(process.argv[2] ?? ''));
const version = process.argv[3] ?? 'unknown';
process.title = `paas-gateway ${options.dataDir}`;

try {
  const gateway = await startGateway(options, { log, version, takeOver: () => stopEarlierGateway(options) });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void gateway.stop());
  // The terminal may be closed; apps are still served.
  process.on('SIGHUP', () => undefined);
  report({ outcome: 'serving', httpPort: gateway.httpPort, httpsPort: gateway.httpsPort });
  endWithDirectory(options, gateway);
  await gateway.drained;
  log.info('gateway has ended', { pid: process.pid });
  process.exit(0);
} catch (error) {
  log.error('gateway could not start', { error });
  report(
    error instanceof PortTakenError
      ? { outcome: 'port-taken', port: error.port, setting: error.setting }
      : { outcome: 'failed', message: error instanceof Error ? error.message : String(error) },
  );
  // Not exit(): the report must reach the starter first. Nothing else keeps the process running.
  process.exitCode = 1;
}

async function stopEarlierGateway({ dataDir }: GatewayOptions): Promise<Handover> {
  try {
    const { traffic } = (await callGateway(gatewayFiles(dataDir).controlSocket, { method: 'POST', path: '/stop', body: {} })) as {
      traffic: Handover;
    };
    return traffic;
  } catch (error) {
    // There is none, or it ended meanwhile. If it still has the ports, opening them fails with that error.
    if (!(error instanceof AppError)) return [];
    throw error;
  }
}

/** Ends the gateway when its data directory is removed: nobody could reach it any more to stop it. */
function endWithDirectory({ dataDir }: GatewayOptions, gateway: Gateway): void {
  const watch = setInterval(() => {
    if (existsSync(gatewayFiles(dataDir).directory)) return;
    clearInterval(watch);
    log.warn('the data directory was removed; the gateway ends');
    void gateway.stop(0);
  }, 2000);
  watch.unref();
}

/** Without an IPC channel (a start by hand) there is nobody to report to. */
function report(start: GatewayStart): void {
  if (process.send === undefined) return;
  process.send(start);
  process.disconnect?.();
}
