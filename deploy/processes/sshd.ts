/** The main of a process of SSH alone (docs/processes.md). Any number of them share a port. */

import { startWithLifetime } from '#deploy/parts/lifetime.ts';
import { serveSsh } from '#deploy/parts/serve-ssh.ts';
import { joinPlatform } from '#deploy/processes/join-platform.ts';
import { runMain } from '#deploy/run-main.ts';

await runMain(process.env, {
  start: (options) =>
    startWithLifetime(async (lifetime) => {
      const { metricsPort, ...joined } = await joinPlatform(lifetime, options);
      await serveSsh(lifetime, joined, options, true);
      const { sshListenPort } = options.settings;
      return {
        describe: (seconds) => [
          `paas sshd is ready (${seconds.toFixed(1)} s): port ${sshListenPort}, metrics at port ${metricsPort}`,
        ],
        stop: (ending) => lifetime.end(ending),
      };
    }),
  stopping: { stop: '\nStopping SSH…', restart: '\nStopping SSH…' },
});
