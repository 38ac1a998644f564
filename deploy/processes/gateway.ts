/** The main of a gateway alone (docs/processes.md). Any number of them share the ports of one data directory. */
import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { gatewayOptions } from '#deploy/gateway-process/gateway-process.ts';
import { readGatewayVersion } from '#deploy/gateway-process/gateway-version.ts';
import { prepareDataDirectory } from '#deploy/host/data-directory.ts';
import { describePortTaken } from '#deploy/host/port-owner.ts';
import { StartError } from '#deploy/host/start-error.ts';
import { runMain } from '#deploy/run-main.ts';
import { startGateway } from '#gateway/gateway.ts';
import { gatewayFiles } from '#gateway/gateway-options.ts';
import { PortTakenError } from '#gateway/listeners/http-servers.ts';
import { withFileLock } from '#shared/files/file-lock.ts';

/** The first gateway creates the certificate authority, which takes a second. */
const startSeconds = 30;

await runMain(process.env, {
  async start({ settings, dataDir, log }) {
    await prepareDataDirectory(dataDir);
    const { directory } = gatewayFiles(dataDir);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const options = { ...gatewayOptions(settings, dataDir), instance: randomUUID().slice(0, 8) };
    const version = await readGatewayVersion(join(import.meta.dirname, '../..'));
    // One after the other: the first creates what all use.
    const gateway = await withFileLock(join(directory, 'start.lock'), startSeconds, () =>
      startGateway(options, { log, version }),
    ).catch(async (error: unknown) => {
      if (!(error instanceof PortTakenError)) throw error;
      throw new StartError(await describePortTaken(error.port, error.setting), { cause: error });
    });
    return {
      describe: (seconds) => [
        `paas gateway is ready (${seconds.toFixed(1)} s): ports ${gateway.httpPort} (HTTP) and ${gateway.httpsPort} (HTTPS)`,
      ],
      async stop() {
        await gateway.stop();
        await gateway.drained;
      },
    };
  },
  stopping: { stop: '\nStopping the gateway…', restart: '\nStopping the gateway…' },
});
