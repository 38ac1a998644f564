import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '#deploy/host/start-error.ts';
import { waitFor } from '#deploy/host/wait-for.ts';
import { claimDatabase, refuseForeignDatabase } from '#deploy/parts/database-owner/claim-database.ts';
import { readDatabaseOwner } from '#deploy/parts/database-owner/database-owner-store.ts';
import type { Lifetime } from '#deploy/parts/lifetime.ts';
import type { StartOptions } from '#deploy/parts/start-options.ts';
import { systemClock } from '#shared/clock.ts';
import { migrate } from '#shared/database/migrate.ts';
import { connectPostgres, type PostgresConnection } from '#shared/database/postgres.ts';
import { DatabaseAuthenticationError } from '#shared/database/postgres-client.ts';
import { migrateJobs } from '#shared/jobs/graphile/migrate-jobs.ts';
import { startPostgres } from '#shared/platform/local/postgres/postgres-server.ts';
import { findPostmaster } from '#shared/platform/local/postgres/postmaster.ts';
import { supervisePostgres } from '#shared/platform/local/postgres/supervise-postgres.ts';
import type { Settings } from '#shared/settings/settings.ts';
import { createPostgresWakeups } from '#shared/wakeups/postgres-wakeups.ts';
import type { Wakeups } from '#shared/wakeups/wakeups.ts';

/** A migrated database, and the notifications between the processes that use it. */
export interface OpenDatabase extends Pick<PostgresConnection, 'db' | 'pool'> {
  wakeups: Wakeups;
}

const connections = 20;

/**
 * Connects to the database that the settings name; without one it starts the embedded PostgreSQL, or finds the one that runs. Call it
 * with the data directory locked.
 * @throws PostgresError when the embedded one does not start
 * @throws StartError when the other one belongs to another data directory, or asks for the password in a way that the settings do not allow
 */
export async function openDatabase(lifetime: Lifetime, options: StartOptions): Promise<OpenDatabase> {
  const { settings, dataDir } = options;
  if (settings.databaseUrl === undefined) return connect(lifetime, options, await startEmbeddedPostgres(lifetime, options));
  // In a cluster nothing of the apps is in a worker's directory, and with packs in an object store no repository either: workers share it.
  if (settings.platform === 'kubernetes' && settings.objectStore !== undefined)
    return connect(lifetime, options, settings.databaseUrl);
  const database = await connect(lifetime, options, settings.databaseUrl, dataDir);
  await claimDatabase(database.db, dataDir);
  return database;
}

/**
 * Brings the schema of the database at `url` up to date. Whose data directory it belongs to does not matter, and does not change.
 * @throws StartError when the server asks for the password in a way that the settings do not allow
 */
export async function migrateDatabase(
  lifetime: Lifetime,
  options: Pick<StartOptions, 'settings' | 'log'>,
  url: string,
): Promise<void> {
  await openMigrated(lifetime, options, url);
}

/**
 * Connects to the database that the settings name; without one it waits for the embedded PostgreSQL, which a worker of the same data
 * directory starts.
 * @param stopping ends the wait
 * @throws StartError as `openDatabase` does, and when the wait was ended
 */
export async function joinDatabase(lifetime: Lifetime, options: StartOptions, stopping: AbortSignal): Promise<OpenDatabase> {
  const { settings, dataDir, log, report } = options;
  if (settings.databaseUrl !== undefined) {
    // With packs in an object store a process may have a directory of its own, on another machine.
    if (settings.objectStore !== undefined) return connect(lifetime, options, settings.databaseUrl);
    const database = await connect(lifetime, options, settings.databaseUrl, dataDir);
    const isThere = async (): Promise<boolean> => (await readDatabaseOwner(database.db)) !== undefined;
    await waitFor({ isThere, what: 'a worker to use this database for the first time', report, stopping });
    await refuseForeignDatabase(database.db, dataDir);
    return database;
  }
  const directory = join(dataDir, 'postgres');
  const isThere = async (): Promise<boolean> => (await findPostmaster(join(directory, 'cluster'))) !== undefined;
  await waitFor({ isThere, what: `the database of a worker in ${dataDir}`, report, stopping });
  return connect(lifetime, options, (await startPostgres({ directory, log })).url);
}

/** @param owner the data directory that the database must belong to, if it belongs to any */
async function connect(lifetime: Lifetime, options: StartOptions, url: string, owner?: string): Promise<OpenDatabase> {
  const { db, pool } = await openMigrated(lifetime, options, url, owner);
  const authentication = chooseAuthentication(options.settings);
  const wakeups = await createPostgresWakeups({ url, authentication, pool, clock: systemClock, log: options.log });
  lifetime.onEnd(() => wakeups.close());
  return { db, pool, wakeups };
}

async function openMigrated(
  lifetime: Lifetime,
  { settings, log }: Pick<StartOptions, 'settings' | 'log'>,
  url: string,
  owner?: string,
): Promise<Pick<PostgresConnection, 'db' | 'pool'>> {
  const warn = (error: Error): void => log.warn('The connection to the database was lost; trying again.', { error });
  const { db, pool, close } = connectPostgres(url, warn, connections, chooseAuthentication(settings));
  lifetime.onEnd(close);
  // Before anything changes.
  if (owner !== undefined) await refuseForeignDatabase(db, owner).catch(explainRefusal);
  await migrate(db).catch(explainRefusal);
  await migrateJobs(pool, log);
  return { db, pool };
}

/** The embedded server is ours: it never gets the password in another way. */
const chooseAuthentication = (settings: Settings): Settings['databaseAuthentication'] =>
  settings.databaseUrl === undefined ? 'scram' : settings.databaseAuthentication;

function explainRefusal(error: unknown): never {
  if (!(error instanceof DatabaseAuthenticationError)) throw error;
  const advice =
    'Let the server use scram-sha-256, or connect by TLS (?sslmode=verify-full), or set PAAS_DATABASE_AUTH=any to send the password anyway.';
  throw new StartError(`PAAS_DATABASE_URL: ${error.message} ${advice}`, { cause: error });
}

async function startEmbeddedPostgres(lifetime: Lifetime, { dataDir, log, report }: StartOptions): Promise<string> {
  const directory = join(dataDir, 'postgres');
  if (!existsSync(directory)) report('-----> Creating the database');
  const server = await supervisePostgres({ directory, log });
  // Live apps may serve beside a database that was found: a start that fails must not take them down.
  if (server.found) lifetime.endingOnFailure = 'restart';
  lifetime.onEnd((ending) => (ending === 'stop' ? server.stop() : server.leave()));
  return server.url;
}
