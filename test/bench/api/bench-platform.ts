import { join } from 'node:path';
import { Agent, fetch } from 'undici';
import { openTestPostgres } from '#test/support/database/test-postgres.ts';
import { removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import type { Measured, Request } from './measure.ts';
import { createPace } from './pace.ts';
import { type BenchUser, fillDatabase, signUpUsers, untilIdle } from './seed.ts';

/** A platform with so much in its database, asked past the gateway: the API alone is measured. */
export interface BenchPlatform {
  databaseUrl: string;
  /** Of PostgreSQL. */
  databasePid: number;
  /** One request for each user by turns. */
  requests(path: (user: BenchUser) => string): readonly Request[];
  /** What is measured: these requests, answered by its API. */
  measured(path: (user: BenchUser) => string): Measured;
  close(): Promise<void>;
}

const users = 160;
const requestsPerRound = 1280;

/** @param runtime of the platform */
export async function openBenchPlatform(
  { apps, builds }: { apps: number; builds: number },
  runtime?: 'bun',
): Promise<BenchPlatform> {
  const started = new AsyncDisposableStack();
  try {
    const postgres = await openTestPostgres();
    started.defer(() => postgres.close());
    const platform = await startPlatform({
      ...(runtime === undefined ? {} : { runtime }),
      env: { PAAS_DATABASE_URL: postgres.url, PAAS_LOG_LEVEL: 'warn' },
    });
    started.defer(() => removePlatform(platform));
    const apiSocket = join(platform.dataDir, 'gateway/api.sock');
    const dispatcher = new Agent({ connect: { socketPath: apiSocket } });
    const people = await signUpUsers(platform, users, (input, init) => fetch(input, { ...init, dispatcher }));
    await dispatcher.close();
    await fillDatabase(postgres.url, people, apps, builds);
    await untilIdle(postgres.url);
    // Of all paths together.
    const pace = createPace(requestsPerRound / users);
    const requests: BenchPlatform['requests'] = (path) =>
      Array.from({ length: requestsPerRound }, (_, index) => {
        const user = people[index % people.length];
        if (user === undefined) throw new Error('nobody signed up');
        return {
          path: path(user),
          headers: { authorization: `Bearer ${user.token}`, 'x-paas-tenant': user.tenantId, 'x-forwarded-for': '10.1.0.1' },
        };
      });
    return {
      databaseUrl: postgres.url,
      databasePid: postgres.pid,
      requests,
      measured: (path) => ({
        socketPath: apiSocket,
        pid: platform.pid,
        databasePid: postgres.pid,
        requests: requests(path),
        pace,
      }),
      close: () => started.disposeAsync(),
    };
  } catch (error) {
    await started.disposeAsync();
    throw error;
  }
}
