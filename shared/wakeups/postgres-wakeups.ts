import type pg from 'pg';
import type { Clock } from '#shared/clock.ts';
import { type DatabaseAuthentication, PostgresClient } from '#shared/database/postgres-client.ts';
import type { Log } from '#shared/log.ts';
import { createWakeups, type Wakeups } from '#shared/wakeups/wakeups.ts';

/** Wakeups over PostgreSQL. */
export interface PostgresWakeups extends Wakeups {
  /** Ends the listening connection. Current waits run until their time is over. */
  close(): Promise<void>;
}

/** Dependencies of {@link createPostgresWakeups}. */
export interface PostgresWakeupsOptions {
  /** Connection URL of the database; one connection besides the pool listens. */
  url: string;
  /** By default SCRAM only. */
  authentication?: DatabaseAuthentication;
  /** Sends notifications to other processes. */
  pool: Pick<pg.Pool, 'query'>;
  clock: Clock;
  log: Log;
}

const channel = 'paas_wakeups';
const backoffMilliseconds = 100;
const longestBackoffMilliseconds = 5000;
const keepAliveMilliseconds = 10_000;

/**
 * Wakeups between all processes that use one database, by LISTEN and NOTIFY; waiters of this process are woken directly.
 * Notifications are missed while the connection is down; after a reconnect all waits end, so that each waiter looks for itself.
 */
export async function createPostgresWakeups(options: PostgresWakeupsOptions): Promise<PostgresWakeups> {
  const { url, authentication = 'scram', pool, clock, log } = options;
  const local = createWakeups();
  /** Marks notifications of this process, which it ignores. */
  const self = crypto.randomUUID();
  const closing = new AbortController();
  const firstTry = Promise.withResolvers<void>();
  let listener: PostgresClient | undefined;
  let unsent = new Set<string>();
  let sending: Promise<void> | undefined;

  const listen = async (onListening: () => void): Promise<void> => {
    const client = new PostgresClient({
      connectionString: url,
      authentication,
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveMilliseconds,
      application_name: channel,
    });
    const ended = new Promise<void>((resolve) => client.once('end', resolve));
    // Every error also ends the connection.
    client.on('error', (error) => log.debug('The connection that listens for wakeups was lost.', { error }));
    client.on('notification', ({ payload = '' }) => {
      const [from, key] = [payload.slice(0, self.length), payload.slice(self.length + 1)];
      if (from !== self) local.wake(key);
    });
    await client.connect();
    listener = client;
    await client.query(`listen ${channel}`);
    onListening();
    await ended;
  };

  const keepListening = async (): Promise<void> => {
    for (let wait = backoffMilliseconds; !closing.signal.aborted; wait = Math.min(2 * wait, longestBackoffMilliseconds)) {
      try {
        await listen(() => {
          wait = backoffMilliseconds;
          firstTry.resolve();
          local.wakeAll();
        });
      } catch (error) {
        await listener?.end().catch(() => undefined);
        log.debug('The connection for wakeups could not be opened; trying again.', { error });
      }
      firstTry.resolve();
      await clock.sleep(wait, closing.signal).catch(() => undefined);
    }
  };

  /** Keys that are woken while a statement runs go into the next one. */
  const send = async (): Promise<void> => {
    while (unsent.size > 0) {
      const payloads = [...unsent].map((key) => `${self} ${key}`);
      unsent = new Set();
      await pool
        .query('select pg_notify($1, payload) from unnest($2::text[]) as payload', [channel, payloads])
        .catch((error: unknown) => log.debug('A wakeup could not be sent to other processes.', { error }));
    }
    sending = undefined;
  };

  const listening = keepListening();
  await firstTry.promise;
  return {
    wake(key) {
      local.wake(key);
      unsent.add(key);
      sending ??= send();
    },
    wait: (...args) => local.wait(...args),
    async close() {
      closing.abort();
      await sending;
      await listener?.end().catch(() => undefined);
      await listening;
    },
  };
}

/** Wakeups of a process that cannot keep a connection open: it wakes others, and notices their changes when its waits time out. */
export interface SendingWakeups extends Wakeups {
  /** Resolves when every notification was sent. */
  sent(): Promise<void>;
}

/** @param pool sends notifications to other processes */
export function createSendingWakeups(pool: Pick<pg.Pool, 'query'>, log: Pick<Log, 'debug'>): SendingWakeups {
  const local = createWakeups();
  const self = crypto.randomUUID();
  const sending = new Set<Promise<unknown>>();
  return {
    wake(key) {
      local.wake(key);
      const sent = pool
        .query('select pg_notify($1, $2)', [channel, `${self} ${key}`])
        .catch((error: unknown) => log.debug('A wakeup could not be sent to other processes.', { error }))
        .finally(() => sending.delete(sent));
      sending.add(sent);
    },
    wait: (...args) => local.wait(...args),
    async sent() {
      await Promise.all(sending);
    },
  };
}
