import { describeStart } from '#deploy/banner.ts';
import { runMain } from '#deploy/run-main.ts';
import { startSingleMachine } from '#deploy/start-single-machine.ts';

await runMain(process.env, {
  async start(options) {
    const platform = await startSingleMachine(options);
    return {
      describe: (seconds) => describeStart(options.settings, options.dataDir, platform.facts, seconds),
      stop: (ending) => platform.stop(ending),
    };
  },
  stopping: {
    stop: '\nStopping apps, gateway and database…',
    restart: '\nStopping the control plane; apps serve on…',
  },
});
