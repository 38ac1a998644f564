import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type PostgresOptions, type PostgresServer, startPostgres } from './postgres-server.ts';
import { findPostmaster } from './postmaster.ts';

export interface SupervisedPostgres extends PostgresServer {
  /** Ends the supervision; the server runs on. Again is harmless. */
  leave(): Promise<void>;
}

const watchMilliseconds = 500;
/** While it does not start, as on a full disk: each attempt costs about a second of work. */
const retryMilliseconds = 3000;

/**
 * Starts PostgreSQL, and again whenever the server has ended by itself, killed or out of disk, until `stop` or `leave`. Its address stays
 * the same, so that users of it need only connect again.
 * @throws PostgresError when it does not start the first time
 */
export async function supervisePostgres(options: PostgresOptions): Promise<SupervisedPostgres> {
  const { log } = options;
  const cluster = join(resolve(options.directory), 'cluster');
  const first = await startPostgres(options);
  const leaving = new AbortController();
  let current = first;

  async function watch(): Promise<void> {
    let complaint = '';
    while (!leaving.signal.aborted) {
      await delay(complaint === '' ? watchMilliseconds : retryMilliseconds, undefined, { signal: leaving.signal }).catch(
        () => undefined,
      );
      if (leaving.signal.aborted || (await findPostmaster(cluster)) !== undefined) continue;
      if (complaint === '') log.warn('The database ended by itself; starting it again.');
      try {
        current = await startPostgres(options);
        complaint = '';
        log.warn('The database is back.');
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        if (message !== complaint) log.error('The database does not start; trying again.', { error });
        complaint = message;
      }
    }
  }

  const watching = watch();
  const leave = async (): Promise<void> => {
    leaving.abort();
    await watching;
  };
  return {
    ...first,
    leave,
    async stop() {
      await leave();
      await current.stop();
    },
  };
}
