/**
 * The main of a worker alone (docs/processes.md): it runs apps and jobs. One worker drives a data directory, or a cluster; others wait, and the
 * first of them takes over when it ends. Apps, add-ons and the database serve on when a worker ends.
 */

import { choosePlatform } from '#deploy/drivers/choose-platform.ts';
import type { ClaimOptions } from '#deploy/drivers/platform-driver.ts';
import { awaitDataDirectory, loadMasterKey, prepareDataDirectory } from '#deploy/host/data-directory.ts';
import { waitFor } from '#deploy/host/wait-for.ts';
import { startWithLifetime } from '#deploy/parts/lifetime.ts';
import { openDatabase } from '#deploy/parts/open-database.ts';
import { runMain } from '#deploy/run-main.ts';
import { startControlPlane } from '#deploy/start-control-plane.ts';
import { gatewayFiles } from '#gateway/gateway-options.ts';
import { createSharedGatewaysRouter, listSharedGateways } from '#shared/routing/gateway-router.ts';
import type { Router } from '#shared/routing/router.ts';

await runMain(process.env, {
  start: (options) =>
    startWithLifetime(async (lifetime) => {
      const { settings, dataDir } = options;
      lifetime.endingOnFailure = 'restart';
      const driver = choosePlatform(settings);
      await prepareDataDirectory(dataDir);
      const lock = await awaitDataDirectory(dataDir, options);
      lifetime.onEnd(() => lock.release());
      await driver.claim(lifetime, options);
      const database = await openDatabase(lifetime, options);
      const masterKey = await loadMasterKey(dataDir, settings.secretKey);
      const router = driver.hasGateways ? await findGateways(options) : undefined;
      const parts = { database, masterKey, driver, router, sharesDirectory: true };
      const { resumedApps } = await startControlPlane(lifetime, parts, options);
      return {
        describe: (seconds) => [`paas worker is ready (${seconds.toFixed(1)} s): ${dataDir}, ${resumedApps} apps brought back`],
        stop: () => lifetime.end('restart'),
      };
    }),
  stopping: { stop: '\nStopping the worker; apps serve on…', restart: '\nStopping the worker; apps serve on…' },
});

/** The router of the gateways of the data directory, once there is one. */
async function findGateways(options: ClaimOptions): Promise<Router> {
  const { directory } = gatewayFiles(options.dataDir);
  const isThere = async (): Promise<boolean> => (await listSharedGateways(directory)).length > 0;
  await waitFor({ ...options, isThere, what: `a gateway of ${options.dataDir}` });
  return createSharedGatewaysRouter(directory);
}
