import { ensureGateway, gatewayOptions } from '#deploy/gateway-process/gateway-process.ts';
import type { Lifetime } from '#deploy/parts/lifetime.ts';
import type { StartOptions } from '#deploy/parts/start-options.ts';
import type { Router } from '#shared/routing/router.ts';

/**
 * Finds the gateway process of the data directory, or starts it.
 * @returns the driver through which it gets its routes
 * @throws SettingsError when a port is taken
 */
export async function startGateway(lifetime: Lifetime, { settings, dataDir, log }: StartOptions): Promise<Router> {
  const gateway = await ensureGateway(gatewayOptions(settings, dataDir), log);
  lifetime.onEnd((ending) => (ending === 'stop' ? gateway.stop() : gateway.detach()));
  return gateway.router;
}
