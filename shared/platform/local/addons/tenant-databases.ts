import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '#shared/clock.ts';
import { PostgresClient } from '#shared/database/postgres-client.ts';
import { AppError } from '#shared/errors.ts';
import type { AppId } from '#shared/ids.ts';
import { createKeyedMutex } from '#shared/keyed-mutex.ts';
import { limits } from '#shared/limits.ts';
import type { Log } from '#shared/log.ts';
import type { AddonSpec } from '#shared/platform/addons.ts';
import type { PostgresSettings } from '#shared/platform/local/postgres/postgres-commands.ts';
import {
  limitPostgresLog,
  type PostgresServer,
  type SessionLimits,
  startPostgres,
} from '#shared/platform/local/postgres/postgres-server.ts';
import { findPostmaster } from '#shared/platform/local/postgres/postmaster.ts';
import { oomScoreAdjustment } from '../sandbox/sandbox.ts';
import type { AddonKind } from './addon-kind.ts';
import { limitSessions, type SharedResources } from './database-sessions.ts';
import { limitDatabaseSizes } from './database-sizes.ts';
import { scramVerifier } from './scram-verifier.ts';

export interface TenantDatabasesOptions {
  /** `addons/postgres` of the data directory. */
  directory: string;
  clock: Clock;
  log: Log;
  /** With the certificate and the key of the local authority, which signs the server's. */
  authorityDirectory?: string;
  /** Added to the settings for tenants. */
  settings?: PostgresSettings;
  /** Size from which a database is read-only. */
  databaseBytes?: number;
  /** What an app may take of what all share. */
  sharedResources?: SharedResources;
}

const watchMilliseconds = 1000;
/** Sizes are measured each time after so many looks at the server. */
const sizeRounds = 5;
/** A tenth of the locks and a quarter of the notifications that the server has room for. */
const usualShares: SharedResources = { transactionSeconds: 3600, locks: 10_000, notificationShare: 0.25 };
const tenantSettings: PostgresSettings = {
  // Before a client has said who it is, it has a connection, too: more than several apps can open (`flow-limits.ts`).
  max_connections: 1000,
  max_locks_per_transaction: 100,
  /** Of each session. */
  temp_file_limit: '256MB',
  // In pages of 8 KiB.
  max_notify_queue_pages: 8192,
  idle_in_transaction_session_timeout: '10min',
  // `drop database` waits for every session, also for one that has not sent its password yet.
  authentication_timeout: '5s',
  // Failed statements are the apps' own affair, and could fill the disk and show secrets.
  log_min_messages: 'fatal',
  log_min_error_statement: 'panic',
};
const sessions: SessionLimits = { memoryBytes: 256 * 1024 * 1024, oomScoreAdjustment };

/**
 * Databases in a PostgreSQL cluster for tenants, apart from the platform's own and started with its first database. Each app has a
 * database and a role, which can enter no other database.
 */
export function createTenantDatabases({
  directory,
  authorityDirectory,
  clock,
  log,
  settings = {},
  databaseBytes = limits.addon.databaseBytes,
  sharedResources = usualShares,
}: TenantDatabasesOptions): AddonKind {
  const cluster = join(directory, 'cluster');
  const mutex = createKeyedMutex<AppId | 'start'>();
  const leaving = new AbortController();
  let watching: Promise<void> | undefined;

  function start(): Promise<PostgresServer> {
    return mutex.run('start', async () => {
      if (leaving.signal.aborted) throw new AppError('internal', 'The platform is stopping.');
      watching ??= watch();
      return startPostgres({
        ...{ directory, log, use: 'apps', tcp: true, sessions },
        // Many drivers ask for it unless they are told otherwise.
        tls: { authorityDirectory },
        settings: { ...tenantSettings, ...settings },
      });
    });
  }

  /** Connects as superuser. Starts the server when it does not run. */
  async function withServer<T>(work: (client: PostgresClient) => Promise<T>): Promise<T> {
    const client = new PostgresClient((await start()).url);
    // The query that waits fails as well; without a listener the error would end the process.
    client.on('error', (error) => log.debug("the connection to the tenants' databases ended", { error }));
    await client.connect();
    try {
      return await work(client);
    } finally {
      await client.end();
    }
  }

  /** Changes to one app's database run one after the other. */
  function change<T>(appId: AppId, work: (client: PostgresClient) => Promise<T>): Promise<T> {
    return mutex.run(appId, () => withServer(work));
  }

  /** Whether the cluster was ever created. */
  const exists = (): Promise<boolean> =>
    stat(cluster).then(
      () => true,
      () => false,
    );

  async function watch(): Promise<void> {
    for (let round = 1; !leaving.signal.aborted; round += 1) {
      await clock.sleep(watchMilliseconds, leaving.signal).catch(() => undefined);
      if (leaving.signal.aborted || !(await exists())) continue;
      const postmaster = await findPostmaster(cluster);
      if (postmaster?.ready === true && round % sizeRounds === 0)
        await withServer(async (client) => {
          await limitSessions(client, sharedResources, log);
          await limitDatabaseSizes(client, databaseBytes, log);
          await limitPostgresLog(directory);
        }).catch((error: unknown) => log.warn("the limits of the tenants' databases could not be checked", { error }));
      if (postmaster !== undefined) continue;
      log.warn("the tenants' database server ended by itself", { directory });
      await start().catch((error: unknown) => log.error("the tenants' database server does not start", { error }));
    }
  }

  return {
    findProblem: () => Promise.resolve(undefined),

    async ensure(spec) {
      const name = databaseName(spec.appId);
      const { password } = spec;
      return change(spec.appId, async (client) => {
        await ensureRole(client, name, spec);
        await ensureDatabase(client, name);
        const { port } = client;
        // Not `postgres:`, which SQLAlchemy refuses.
        return { uri: `postgresql://${name}:${password}@127.0.0.1:${port}/${name}`, host: '127.0.0.1', port, password };
      });
    },

    async stop(appId) {
      const name = databaseName(appId);
      if (!(await exists())) return false;
      return change(appId, async (client) => {
        const known = await client.query('select 1 from pg_roles where rolname = $1 and rolcanlogin', [name]);
        if (known.rowCount === 0) return false;
        await client.query(`alter role ${name} nologin`);
        await client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name]);
        return true;
      });
    },

    async delete(appId) {
      const name = databaseName(appId);
      if (!(await exists())) return false;
      return change(appId, async (client) => {
        const known = await client.query('select 1 from pg_roles where rolname = $1', [name]);
        await client.query(`drop database if exists ${name} with (force)`);
        await client.query(`drop role if exists ${name}`);
        return known.rowCount === 1;
      });
    },

    async read(appId) {
      if (!(await exists())) return undefined;
      // Down, and about to be started again: it is not known whether the app has a database in it, so assume that it has.
      if ((await findPostmaster(cluster))?.ready !== true) return { ready: 0, desired: 1 };
      return withServer(async (client) => {
        const { rows } = await client.query<{ login: boolean; open: boolean }>(
          `select rolcanlogin as login, coalesce(datallowconn, false) as open
           from pg_roles left join pg_database on datname = rolname where rolname = $1`,
          [databaseName(appId)],
        );
        const [found] = rows;
        return found && { ready: found.login && found.open ? 1 : 0, desired: found.login ? 1 : 0 };
      });
    },

    async adopt() {
      if (!(await exists())) return;
      // Not awaited: the platform's start does not depend on it.
      watching ??= watch();
      start().catch((error: unknown) => log.error("the tenants' database server does not start", { error }));
    },

    async stopAll() {
      leaving.abort();
      await watching;
      await mutex.run('start', async () => {
        if ((await findPostmaster(cluster)) !== undefined) await (await startPostgres({ directory, log, use: 'apps' })).stop();
      });
    },

    async detach() {
      leaving.abort();
      await watching;
      await mutex.run('start', () => Promise.resolve());
    },
  };
}

/** The name of an app's database and of the role that owns it: lower-case letters, digits and '_', so that it needs no quotes. */
function databaseName(appId: AppId): string {
  if (!/^[0-9a-f-]{36}$/.test(appId)) throw new AppError('internal', 'Not the id of an app.');
  return `app_${appId.replaceAll('-', '')}`;
}

async function ensureRole(client: PostgresClient, name: string, { password, connections }: AddonSpec): Promise<void> {
  const known = await client.query('select 1 from pg_roles where rolname = $1', [name]);
  if (known.rowCount === 0) await client.query(`create role ${name}`);
  const verifier = client.escapeLiteral(await scramVerifier(password));
  await client.query(
    `alter role ${name} with login nosuperuser nocreatedb nocreaterole noreplication nobypassrls
     connection limit ${connections} password ${verifier}`,
  );
}

/** A new database refuses connections until only its owner may enter: PostgreSQL lets every role into it. */
async function ensureDatabase(client: PostgresClient, name: string): Promise<void> {
  for (const shared of ['postgres', 'template1']) await client.query(`revoke all on database ${shared} from public`);
  const known = await client.query('select 1 from pg_database where datname = $1', [name]);
  if (known.rowCount === 0)
    await client.query(`create database ${name} owner ${name} template template0 allow_connections false`);
  await client.query(`revoke all on database ${name} from public`);
  await client.query(`alter database ${name} allow_connections true`);
}
