/**
 * The main of a worker alone (docs/processes.md): it runs apps and jobs. One worker drives a data directory; others wait, and the first
 * of them takes over when it ends. Apps, add-ons and the database serve on when a worker ends.
 */
import { awaitDataDirectory, loadMasterKey, prepareDataDirectory } from '#deploy/host/data-directory.ts';
import { waitFor } from '#deploy/host/wait-for.ts';
import { choosePlatform } from '#deploy/parts/choose-platform.ts';
import { startWithLifetime } from '#deploy/parts/lifetime.ts';
import { openDatabase } from '#deploy/parts/open-database.ts';
import { runMain } from '#deploy/run-main.ts';
import { startControlPlane } from '#deploy/start-control-plane.ts';
import { gatewayFiles } from '#gateway/gateway-options.ts';
import { createSharedGatewaysRouter, listSharedGateways } from '#shared/routing/gateway-router.ts';

await runMain(process.env, {
  start: (options) =>
    startWithLifetime(async (lifetime) => {
      const { settings, dataDir } = options;
      lifetime.endingOnFailure = 'restart';
      // Before anything changes.
      choosePlatform(settings);
      await prepareDataDirectory(dataDir);
      const lock = await awaitDataDirectory(dataDir, options);
      lifetime.onEnd(() => lock.release());
      const database = await openDatabase(lifetime, options);
      const masterKey = await loadMasterKey(dataDir, settings.secretKey);
      const { directory } = gatewayFiles(dataDir);
      const isThere = async (): Promise<boolean> => (await listSharedGateways(directory)).length > 0;
      await waitFor({ ...options, isThere, what: `a gateway of ${dataDir}` });
      const router = createSharedGatewaysRouter(directory);
      const { resumedApps } = await startControlPlane(lifetime, { database, masterKey, router, sharesDirectory: true }, options);
      return {
        describe: (seconds) => [`paas worker is ready (${seconds.toFixed(1)} s): ${dataDir}, ${resumedApps} apps brought back`],
        stop: () => lifetime.end('restart'),
      };
    }),
  stopping: { stop: '\nStopping the worker; apps serve on…', restart: '\nStopping the worker; apps serve on…' },
});
