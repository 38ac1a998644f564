import type { StartFacts } from '#deploy/banner.ts';
import { choosePlatform } from '#deploy/drivers/choose-platform.ts';
import type { ClaimOptions } from '#deploy/drivers/platform-driver.ts';
import { loadMasterKey, lockDataDirectory, prepareDataDirectory } from '#deploy/host/data-directory.ts';
import { type Ending, type Lifetime, startWithLifetime } from '#deploy/parts/lifetime.ts';
import { openDatabase } from '#deploy/parts/open-database.ts';
import { serveApi } from '#deploy/parts/serve-api.ts';
import { serveSsh } from '#deploy/parts/serve-ssh.ts';
import { startGateway } from '#deploy/parts/start-gateway.ts';
import { startControlPlane } from '#deploy/start-control-plane.ts';
import { gatewayFiles } from '#gateway/gateway-options.ts';
import { listenOnSocket } from '#shared/net/unix-socket.ts';

export interface SingleMachine {
  facts: StartFacts;
  stop(ending: Ending): Promise<void>;
}

/**
 * Starts the whole platform on this machine, each part after those it needs: data directory, database, gateway, apps, worker,
 * API, SSH. What was started is stopped again when a later part fails.
 * @throws StartError, SettingsError or PostgresError for what the operator can fix
 */
export function startSingleMachine(options: ClaimOptions): Promise<SingleMachine> {
  return startWithLifetime((lifetime) => startParts(lifetime, options));
}

async function startParts(lifetime: Lifetime, options: ClaimOptions): Promise<SingleMachine> {
  const { settings, dataDir } = options;
  const driver = choosePlatform(settings);
  await prepareDataDirectory(dataDir);
  const lock = await lockDataDirectory(dataDir);
  lifetime.onEnd(() => lock.release());
  await driver.claim(lifetime, options);
  const database = await openDatabase(lifetime, options);
  const masterKey = await loadMasterKey(dataDir, settings.secretKey);
  const router = await startGateway(lifetime, options);
  const { resumedApps, ...parts } = await startControlPlane(
    lifetime,
    { database, masterKey, driver, router, sharesDirectory: false },
    options,
  );
  const { allowedOrigins } = settings;
  await serveApi(lifetime, { ...parts, allowedOrigins }, (server) => listenOnSocket(server, gatewayFiles(dataDir).apiSocket));
  await serveSsh(lifetime, parts, options);

  const { sandbox, sandboxProblem } = parts.context.platform.capabilities;
  return {
    facts: { sandboxProblem: sandbox ? undefined : sandboxProblem, resumedApps },
    stop: (ending) => lifetime.end(ending),
  };
}
