import { resolve } from 'node:path';
import { describeStart } from '#deploy/banner.ts';
import { StartError } from '#deploy/start-error.ts';
import { startSingleMachine } from '#deploy/start-single-machine.ts';
import { onStopSignal } from '#deploy/stop-signals.ts';
import { createLog } from '#shared/log.ts';
import { PostgresError } from '#shared/platform/local/postgres/postgres-server.ts';
import { parseSettings, SettingsError } from '#shared/settings.ts';

/** Faults that the operator can mend are one line each; anything else is ours, and shows its stack. */
function explain(error: unknown): string {
  const known = error instanceof SettingsError || error instanceof StartError || error instanceof PostgresError;
  if (known) return error.message;
  return `paas could not start, and this is a fault of its own:\n${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
}

const tell = (line: string): void => console.log(line);

try {
  const startedAt = performance.now();
  const settings = parseSettings(process.env);
  const dataDir = resolve(settings.dataDir);
  const log = createLog(settings.logLevel === 'info' ? 'warn' : settings.logLevel, (line) => process.stderr.write(`${line}\n`));
  const stopAsked = Promise.withResolvers<'stop' | 'restart'>();
  onStopSignal(
    () => stopAsked.resolve('stop'),
    () => process.exit(130),
  );
  // For whoever upgrades the platform: apps, gateway and database serve on, and the next start takes them over.
  process.on('SIGUSR2', () => stopAsked.resolve('restart'));

  const platform = await startSingleMachine({ settings, dataDir, hostEnv: process.env, log, tell });
  for (const line of describeStart(settings, dataDir, platform.facts, (performance.now() - startedAt) / 1000)) tell(line);

  const how = await stopAsked.promise;
  tell(how === 'stop' ? '\nStopping apps, gateway and database…' : '\nStopping the control plane; apps serve on…');
  await platform.stop(how);
  tell('Stopped.');
  process.exit(0);
} catch (error) {
  console.error(` !     ${explain(error)}`);
  process.exit(1);
}
