import pg from 'pg';
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/log.ts';
import { createWakeups, type Wakeups } from '#shared/wakeups/wakeups.ts';

export interface PostgresWakeups extends Wakeups {
  /** Ends the connection that listens. Who waits goes on to the end of their time. */
  close(): Promise<void>;
}

export interface PostgresWakeupsOptions {
  /** Of the database; one connection to it listens, beside the pool. */
  url: string;
  /** Tells the other processes. */
  pool: Pick<pg.Pool, 'query'>;
  clock: Clock;
  log: Log;
}

const channel = 'paas_wakeups';
const backoffMilliseconds = 100;
const longestBackoffMilliseconds = 5000;
const keepAliveMilliseconds = 10_000;

/**
 * For all processes on one database, by LISTEN and NOTIFY; within this one at once. While there is no connection the others are
 * not heard: once there is one again everybody wakes, to look for themselves.
 */
export async function createPostgresWakeups({ url, pool, clock, log }: PostgresWakeupsOptions): Promise<PostgresWakeups> {
  const local = createWakeups();
  /** Marks what this process said, which it knows already. */
  const self = crypto.randomUUID();
  const closing = new AbortController();
  const firstTry = Promise.withResolvers<void>();
  let listener: pg.Client | undefined;
  let unsaid = new Set<string>();
  let saying: Promise<void> | undefined;

  const listen = async (onListening: () => void): Promise<void> => {
    const client = new pg.Client({
      connectionString: url,
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveMilliseconds,
      application_name: channel,
    });
    const ended = new Promise<void>((resolve) => client.once('end', resolve));
    // Whatever goes wrong ends the connection, too.
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
        log.debug('Wakeups of other processes cannot be heard; trying again.', { error });
      }
      firstTry.resolve();
      await clock.sleep(wait, closing.signal).catch(() => undefined);
    }
  };

  /** What is said meanwhile goes together with the next statement. */
  const say = async (): Promise<void> => {
    while (unsaid.size > 0) {
      const payloads = [...unsaid].map((key) => `${self} ${key}`);
      unsaid = new Set();
      await pool
        .query('select pg_notify($1, payload) from unnest($2::text[]) as payload', [channel, payloads])
        .catch((error: unknown) => log.debug('A wakeup could not be told to other processes.', { error }));
    }
    saying = undefined;
  };

  const listening = keepListening();
  await firstTry.promise;
  return {
    wake(key) {
      local.wake(key);
      unsaid.add(key);
      saying ??= say();
    },
    wait: (...args) => local.wait(...args),
    async close() {
      closing.abort();
      await saying;
      await listener?.end().catch(() => undefined);
      await listening;
    },
  };
}
