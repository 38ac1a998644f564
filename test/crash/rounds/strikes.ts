import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { type CommitCutter, type CutWay, openCommitCutter } from '#test/support/crash/commit-cutter.ts';
import type { CrashHost } from '#test/support/crash/crash-host-process.ts';
import { onServer } from '#test/support/database/on-server.ts';
import { openTestPostgres, type TestPostgres } from '#test/support/database/test-postgres.ts';
import { pick, type Random } from '#test/support/random.ts';

export interface Work {
  /** Begins everything; resolves when each request has its answer or never gets one. */
  begin(): Promise<void>;
  /** Resolves when nothing is under way any more. */
  settled(): Promise<unknown>;
}

/**
 * Lets the work begin and something happen in the middle of it. @returns where it struck, each time it did; nothing when
 * this was only to learn where it could
 */
export type Strike = (host: CrashHost, work: Work) => Promise<readonly string[]>;

export const ways = ['kill', 'cut', 'postgres'] as const;
/** kill -9 of the control plane; connections cut around a COMMIT; PostgreSQL stopped hard. */
export type Way = (typeof ways)[number];

/** What rounds of one way stand on. */
export interface Ground {
  /** Superuser's URL of the PostgreSQL. */
  readonly serverUrl: string;
  /** The address at which a control plane reaches a database of it. */
  reachBy(url: URL): URL;
  /** The control plane outlives a strike. */
  readonly outages: boolean;
  readonly strike: Strike;
  close(): Promise<void>;
}

/** @param serverUrl superuser's URL of a PostgreSQL that is not harmed: one that is to be killed is the ground's own */
export async function openGround(way: Way, serverUrl: string, random: Random): Promise<Ground> {
  if (way === 'kill') {
    return { serverUrl, reachBy: (url) => url, outages: false, strike: createKill(random), close: async () => undefined };
  }
  if (way === 'cut') {
    const cutter = await openCommitCutter(new URL(serverUrl));
    const { reach, close } = cutter;
    return { serverUrl, reachBy: reach, outages: true, strike: createCut(cutter, random), close };
  }
  // What is acknowledged must survive the server, if not the machine.
  const postgres = await openTestPostgres({ synchronous_commit: 'on' });
  return {
    serverUrl: postgres.url,
    reachBy: (url) => url,
    outages: true,
    strike: createHardStop(postgres, random),
    close: () => postgres.close(),
  };
}

/** Longer than it takes until everything is under way. */
const momentMilliseconds = 120;

/** The first time it only learns which points there are. */
function createKill(random: Random): Strike {
  let known: readonly (readonly [point: string, count: number])[] = [];
  return async (host, { begin, settled }) => {
    if (known.length === 0) {
      await host.order({ kind: 'count' });
      await begin();
      await settled();
      known = Object.entries(await host.order({ kind: 'tell' }));
      await host.kill();
      return [];
    }
    const die = async (order: { point?: string; nth: number } | undefined): Promise<string> => {
      const timer = order === undefined ? setTimeout(() => void host.kill(), random(momentMilliseconds)) : undefined;
      if (order !== undefined) await host.order({ kind: 'die', ...order });
      await begin();
      // Some deaths wait for what goes on after the answers.
      const survived = await Promise.race([host.died.then(() => false), settled().then(() => true)]);
      clearTimeout(timer);
      if (survived && order === undefined) await delay(random(20));
      await host.kill();
      return survived || order === undefined ? 'at a random moment' : (order.point ?? 'at a random point');
    };
    const choice = random(10);
    if (choice < 2) return [await die(undefined)];
    const all = known.reduce((sum, [, count]) => sum + count, 0);
    if (choice < 5) return [await die({ nth: 1 + random(all) })];
    const [point, count] = pick(random, known);
    return [await die({ point, nth: 1 + random(count) })];
  };
}

const mostCuts = 8;
const cutNames: Record<CutWay, string> = {
  unsent: 'before it was sent',
  sent: 'right after it was sent',
  answered: 'after it was done, before the answer came',
};

function createCut(cutter: CommitCutter, random: Random): Strike {
  return async (_, { begin, settled }) => {
    const points: string[] = [];
    let left = 1 + random(mostCuts);
    cutter.judge = (kind) => {
      if (left === 0 || random(kind === 'COMMIT' ? 4 : 16) > 0) return undefined;
      left -= 1;
      const way = pick(random, ['unsent', 'sent', 'sent', 'answered'] as const);
      points.push(`${kind} cut ${cutNames[way]}`);
      return way;
    };
    const timer = setTimeout(() => {
      if (cutter.cutAll() > 0) points.push('all connections cut at a random moment');
    }, random(2000));
    await begin();
    await settled();
    clearTimeout(timer);
    cutter.judge = () => undefined;
    return points;
  };
}

function createHardStop(postgres: TestPostgres, random: Random): Strike {
  return async (_, { begin }) => {
    const doing = begin();
    await delay(random(400));
    const postmaster = postgres.pid;
    const witness = new pg.Client(postgres.url);
    const noticed = new Promise<void>((resolve) => witness.on('error', () => resolve()));
    await witness.connect();
    const way = pick(random, ['PostgreSQL killed', 'PostgreSQL stopped at once', 'a process of PostgreSQL killed'] as const);
    if (way === 'a process of PostgreSQL killed') {
      const children = (await readFile(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8')).trim().split(' ');
      // It starts over by itself, without asking the others to end in order.
      process.kill(Number(pick(random, children)), 'SIGKILL');
    } else {
      process.kill(postmaster, way === 'PostgreSQL killed' ? 'SIGKILL' : 'SIGQUIT');
      await postgres.startAgain();
    }
    await noticed;
    await waitUntilReachable(postgres.url);
    await doing;
    return [way];
  };
}

/** After a restart of its own it refuses for a while. */
async function waitUntilReachable(url: string): Promise<void> {
  for (;;) {
    try {
      return await onServer(url, 'select');
    } catch {
      await delay(20);
    }
  }
}
