/**
 * The gateway's own process: `gateway.ts <options as JSON> <version>`. It is started detached by the control plane and
 * outlives it. What it logs goes to standard output; over the IPC channel it says once how its start went.
 */
import { existsSync } from 'node:fs';
import { createGatewayLog, type GatewayStart } from '#deploy/gateway-process/gateway-start.ts';
import { type Gateway, type Handover, PortTakenError, startGateway } from '#gateway/gateway.ts';
import { type GatewayOptions, gatewayFiles, gatewayOptionsSchema } from '#gateway/gateway-options.ts';
import { AppError } from '#shared/errors.ts';
import { callGateway } from '#shared/routing/call-gateway.ts';

const log = createGatewayLog();
const options = gatewayOptionsSchema.parse(JSON.parse(process.argv[2] ?? ''));
const version = process.argv[3] ?? 'unknown';
process.title = `paas-gateway ${options.dataDir}`;

try {
  const gateway = await startGateway(options, { log, version, takeOver: () => stopEarlierGateway(options) });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void gateway.stop());
  // Its terminal may go away; the apps' visitors stay.
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
  // Not exit(): the report must reach the starter first. Nothing else holds the process.
  process.exitCode = 1;
}

async function stopEarlierGateway({ dataDir }: GatewayOptions): Promise<Handover> {
  try {
    const { traffic } = (await callGateway(gatewayFiles(dataDir).controlSocket, { method: 'POST', path: '/stop', body: {} })) as {
      traffic: Handover;
    };
    return traffic;
  } catch (error) {
    // None there, or it went down on the way; if it holds the ports after all, opening them says so.
    if (!(error instanceof AppError)) return [];
    throw error;
  }
}

/** A platform whose data directory was removed is gone: nobody could ever reach this process again to end it. */
function endWithDirectory({ dataDir }: GatewayOptions, gateway: Gateway): void {
  const watch = setInterval(() => {
    if (existsSync(gatewayFiles(dataDir).directory)) return;
    clearInterval(watch);
    log.warn('the data directory is gone; the gateway ends');
    // Its list of routes cannot be written any more; it ends all the same.
    gateway.stop(0).catch(() => process.exit(1));
  }, 2000);
  watch.unref();
}

/** Nobody listens when it was started by hand. */
function report(start: GatewayStart): void {
  if (process.send === undefined) return;
  process.send(start);
  process.disconnect?.();
}
