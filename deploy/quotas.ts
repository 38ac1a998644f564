/**
 * Shows or changes the quotas of one tenant, for the operator: `npm run quotas -- <tenant id> [apps=20 instances=40 | --reset]`. It works
 * on the database of the settings, or of the data directory while the platform runs there.
 */
import { join, resolve } from 'node:path';
import { changeQuotas } from '#deploy/change-quotas.ts';
import { StartError } from '#deploy/host/start-error.ts';
import { connectPostgres } from '#shared/database/postgres.ts';
import { createLog } from '#shared/log.ts';
import { PostgresError, startPostgres } from '#shared/platform/local/postgres/postgres-server.ts';
import { findPostmaster } from '#shared/platform/local/postgres/postmaster.ts';
import { parseSettings, type Settings, SettingsError } from '#shared/settings/settings.ts';

async function findDatabase(settings: Settings): Promise<string> {
  if (settings.databaseUrl !== undefined) return settings.databaseUrl;
  const directory = join(resolve(settings.dataDir), 'postgres');
  if ((await findPostmaster(join(directory, 'cluster'))) === undefined)
    throw new StartError(
      `No platform runs in ${resolve(settings.dataDir)}. Start it, or set PAAS_DATA_DIR to its data directory.`,
    );
  return (await startPostgres({ directory, log: createLog('warn', (line) => process.stderr.write(`${line}\n`)) })).url;
}

try {
  const settings = parseSettings(process.env);
  const url = await findDatabase(settings);
  const authentication = settings.databaseUrl === undefined ? 'scram' : settings.databaseAuthentication;
  const { db, close } = connectPostgres(url, () => undefined, 1, authentication);
  try {
    for (const line of await changeQuotas(db, settings, process.argv.slice(2))) console.log(line);
  } finally {
    await close();
  }
} catch (error) {
  const known = error instanceof SettingsError || error instanceof StartError || error instanceof PostgresError;
  console.error(` !     ${known ? error.message : String(error)}`);
  process.exitCode = 1;
}
