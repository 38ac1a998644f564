import { resolve } from 'node:path';
import { describeStart } from '#deploy/banner.ts';
import { protectFromOutOfMemory } from '#deploy/host/protect-process.ts';
import { StartError } from '#deploy/host/start-error.ts';
import { onStopSignal } from '#deploy/host/stop-signals.ts';
import type { Ending } from '#deploy/parts/lifetime.ts';
import { startSingleMachine } from '#deploy/start-single-machine.ts';
import { createLog } from '#shared/log.ts';
import { PostgresError } from '#shared/platform/local/postgres/postgres-server.ts';
import { parseSettings, SettingsError } from '#shared/settings/settings.ts';

/** One line for a fault that the operator can fix. Anything else is a fault of the platform, and shows its stack. */
function explain(error: unknown): string {
  const known = error instanceof SettingsError || error instanceof StartError || error instanceof PostgresError;
  if (known) return error.message;
  return `paas could not start because of an internal error:\n${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
}

const report = (line: string): void => console.log(line);

try {
  const startedAt = performance.now();
  await protectFromOutOfMemory();
  const settings = parseSettings(process.env);
  const dataDir = resolve(settings.dataDir);
  const log = createLog(settings.logLevel === 'info' ? 'warn' : settings.logLevel, (line) => process.stderr.write(`${line}\n`));
  const stopAsked = Promise.withResolvers<Ending>();
  onStopSignal(
    () => stopAsked.resolve('stop'),
    () => process.exit(130),
  );
  // For whoever upgrades the platform: apps, gateway and database serve on, and the next start takes them over.
  process.on('SIGUSR2', () => stopAsked.resolve('restart'));

  const platform = await startSingleMachine({ settings, dataDir, hostEnv: process.env, log, report });
  for (const line of describeStart(settings, dataDir, platform.facts, (performance.now() - startedAt) / 1000)) report(line);

  const ending = await stopAsked.promise;
  report(ending === 'stop' ? '\nStopping apps, gateway and database…' : '\nStopping the control plane; apps serve on…');
  await platform.stop(ending);
  report('Stopped.');
  process.exit(0);
} catch (error) {
  console.error(` !     ${explain(error)}`);
  process.exit(1);
}
