/**
 * Migrates the database of the settings and ends: before an upgrade, so that a migration that fails changes nothing else. Every process
 * does the same at its start.
 */
import { StartError } from '#deploy/host/start-error.ts';
import { startWithLifetime } from '#deploy/parts/lifetime.ts';
import { migrateDatabase } from '#deploy/parts/open-database.ts';
import { createLog } from '#shared/log.ts';
import { parseSettings, SettingsError } from '#shared/settings/settings.ts';

try {
  const settings = parseSettings(process.env);
  if (settings.databaseUrl === undefined)
    throw new StartError('PAAS_DATABASE_URL: is required: which database shall be migrated?');
  const url = settings.databaseUrl;
  const log = createLog(settings.logLevel, (line) => process.stderr.write(`${line}\n`));
  await startWithLifetime(async (lifetime) => {
    await migrateDatabase(lifetime, { settings, log }, url);
    await lifetime.end('restart');
  });
  console.log('The database is migrated.');
} catch (error) {
  const known = error instanceof SettingsError || error instanceof StartError;
  console.error(` !     ${known ? error.message : String(error)}`);
  process.exitCode = 1;
}
