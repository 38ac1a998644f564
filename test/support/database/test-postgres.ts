import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLog } from '#shared/log.ts';
import type { PostgresSettings } from '#shared/platform/local/postgres/postgres-commands.ts';
import { type PostgresServer, startPostgres } from '#shared/platform/local/postgres/postgres-server.ts';
import { findPostmaster, waitForEnd } from '#shared/platform/local/postgres/postmaster.ts';
import { copyClusterTemplate } from '#test/support/database/cluster-template.ts';

const prefix = 'paas-test-postgres-';

/** Fast and forgetful: what is written need not survive the machine. */
const forgetful = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', max_connections: 300 };

export interface TestPostgres {
  /** Superuser on the database `postgres`. */
  readonly url: string;
  readonly server: PostgresServer;
  readonly directory: string;
  /** Of the server that runs now. */
  readonly pid: number;
  /** Starts it again at the same address, once it was killed. */
  startAgain(): Promise<void>;
  /** Stops the server and removes its files. */
  close(): Promise<void>;
}

/**
 * A whole PostgreSQL server of the test's own, for tests that stop, kill or reconfigure it.
 * @param settings on top of the forgetful ones
 */
export async function openTestPostgres(settings: PostgresSettings = {}): Promise<TestPostgres> {
  const directory = await mkdtemp(join(tmpdir(), prefix));
  // Run by root, PostgreSQL's own user must get through.
  await chmod(directory, 0o711);
  await writeFile(join(directory, 'owner'), String(process.pid));
  const log = createLog('warn', (line) => process.stderr.write(`${line}\n`));
  const options = { directory: join(directory, 'postgres'), settings: { ...forgetful, ...settings }, log };
  await copyClusterTemplate(options.directory);
  const server = await startPostgres(options);
  let running = server;
  return {
    url: server.url,
    server,
    directory,
    get pid() {
      return running.pid;
    },
    startAgain: async () => {
      // What ends looks as if it still ran.
      await waitForEnd(join(options.directory, 'cluster'), running.pid, 10_000);
      running = await startPostgres(options);
    },
    close: async () => {
      await running.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Ends and removes the servers in `place` of test runs that were killed before they could. */
export async function removeAbandonedPostgres(place = tmpdir()): Promise<void> {
  for (const name of await readdir(place)) {
    if (!name.startsWith(prefix)) continue;
    const directory = join(place, name);
    const owner = Number(await readFile(join(directory, 'owner'), 'utf8').catch(() => Number.NaN));
    if (!Number.isInteger(owner) || isAlive(owner)) continue;
    const postmaster = await findPostmaster(join(directory, 'postgres', 'cluster'));
    if (postmaster !== undefined) process.kill(postmaster.pid, 'SIGQUIT');
    await rm(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
