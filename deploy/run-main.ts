import { resolve } from 'node:path';
import { protectFromOutOfMemory } from '#deploy/host/protect-process.ts';
import { StartError } from '#deploy/host/start-error.ts';
import { onStopSignal } from '#deploy/host/stop-signals.ts';
import type { Ending } from '#deploy/parts/lifetime.ts';
import type { StartOptions } from '#deploy/parts/start-options.ts';
import { createLog } from '#shared/log.ts';
import { PostgresError } from '#shared/platform/local/postgres/postgres-server.ts';
import { parseSettings, SettingsError } from '#shared/settings/settings.ts';

/** What a main has started. */
export interface Running {
  /** For the operator, when everything runs. @param seconds that the start took */
  describe(seconds: number): string[];
  stop(ending: Ending): Promise<void>;
}

export interface Main {
  start(options: StartOptions & { stopping: AbortSignal }): Promise<Running>;
  /** What is printed when the process was asked to end. */
  stopping: Readonly<Record<Ending, string>>;
}

/**
 * Runs a main until it is asked to end: by Ctrl-C, SIGTERM or SIGHUP, upon which nothing is left running, or by SIGUSR2, upon which apps,
 * gateway and database serve on. Ends the process.
 * @param env the process environment
 */
export async function runMain(env: NodeJS.ProcessEnv, main: Main): Promise<never> {
  const report = (line: string): void => console.log(line);
  try {
    const startedAt = performance.now();
    await protectFromOutOfMemory();
    const settings = parseSettings(env);
    const dataDir = resolve(settings.dataDir);
    const log = createLog(settings.logLevel === 'info' ? 'warn' : settings.logLevel, (line) => process.stderr.write(`${line}\n`));
    const stopAsked = Promise.withResolvers<Ending>();
    const stopping = new AbortController();
    onStopSignal(
      () => {
        stopping.abort();
        stopAsked.resolve('stop');
      },
      () => process.exit(130),
    );
    // For whoever upgrades the platform: the next start takes over what serves on.
    process.on('SIGUSR2', () => {
      stopping.abort();
      stopAsked.resolve('restart');
    });

    const running = await main.start({ settings, dataDir, hostEnv: env, log, report, stopping: stopping.signal });
    for (const line of running.describe((performance.now() - startedAt) / 1000)) report(line);

    const ending = await stopAsked.promise;
    report(main.stopping[ending]);
    await running.stop(ending);
    report('Stopped.');
    process.exit(0);
  } catch (error) {
    console.error(` !     ${explain(error)}`);
    process.exit(1);
  }
}

/** One line for a fault that the operator can fix. Anything else is a fault of the platform, and shows its stack. */
function explain(error: unknown): string {
  const known = error instanceof SettingsError || error instanceof StartError || error instanceof PostgresError;
  if (known) return error.message;
  return `paas could not start because of an internal error:\n${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
}
