import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { PostgresClient } from '#shared/database/postgres-client.ts';
import type { ControlPlaneProcess } from '#test/support/crash/control-plane-process.ts';
import { type CutMoment, openPostgresProxy, type PostgresProxy } from '#test/support/crash/postgres-proxy.ts';
import { onServer } from '#test/support/database/on-server.ts';
import { openTestPostgres, type TestPostgres } from '#test/support/database/test-postgres.ts';
import { pick, type Random } from '#test/support/random.ts';

export interface Work {
  /** Starts all operations; resolves when each request has its answer, or can get none any more. */
  start(): Promise<void>;
  /** Resolves when nothing is under way any more. */
  whenIdle(): Promise<unknown>;
}

/**
 * Starts the work, and injects one or several faults in the middle of it.
 * @returns the point of each fault; none when the work was only observed, to learn which points there are
 */
export type InjectFault = (controlPlane: ControlPlaneProcess, work: Work) => Promise<readonly string[]>;

export const faultKinds = ['kill', 'cut', 'postgres'] as const;
/** 'kill': kill -9 of the control plane. 'cut': connections cut around a COMMIT. 'postgres': PostgreSQL killed or stopped at once. */
export type FaultKind = (typeof faultKinds)[number];

/** A PostgreSQL for the test environment, and the faults of one kind. */
export interface FaultInjector {
  /** Superuser's URL of the PostgreSQL. */
  readonly serverUrl: string;
  /** The address at which a control plane reaches a database of it, given the database's own. */
  toProxyUrl(url: URL): URL;
  /** The control plane survives the faults. */
  readonly hostSurvives: boolean;
  readonly injectFault: InjectFault;
  close(): Promise<void>;
}

/** @param serverUrl superuser's URL of a PostgreSQL that is not harmed: the injector starts its own where it is to be killed */
export async function openFaultInjector(kind: FaultKind, serverUrl: string, random: Random): Promise<FaultInjector> {
  if (kind === 'kill') {
    return {
      serverUrl,
      toProxyUrl: (url) => url,
      hostSurvives: false,
      injectFault: createKill(random),
      close: async () => undefined,
    };
  }
  if (kind === 'cut') {
    const proxy = await openPostgresProxy(new URL(serverUrl));
    const { proxyUrl, close } = proxy;
    return { serverUrl, toProxyUrl: proxyUrl, hostSurvives: true, injectFault: createCut(proxy, random), close };
  }
  // What is acknowledged must survive the end of the server, though not that of the machine.
  const postgres = await openTestPostgres({ synchronous_commit: 'on' });
  return {
    serverUrl: postgres.url,
    toProxyUrl: (url) => url,
    hostSurvives: true,
    injectFault: createHardStop(postgres, random),
    close: () => postgres.close(),
  };
}

/** Longer than it takes until all operations are under way. */
const killWithinMilliseconds = 120;

/** The first round only counts the fail points. */
function createKill(random: Random): InjectFault {
  let known: readonly (readonly [point: string, count: number])[] = [];
  return async (controlPlane, { start, whenIdle }) => {
    if (known.length === 0) {
      await controlPlane.failPoint({ kind: 'reset' });
      await start();
      await whenIdle();
      known = Object.entries(await controlPlane.failPoint({ kind: 'report' }));
      await controlPlane.kill();
      return [];
    }
    const killAt = async (target: { point?: string; nth: number } | undefined): Promise<string> => {
      const timer = target === undefined ? setTimeout(() => void controlPlane.kill(), random(killWithinMilliseconds)) : undefined;
      if (target !== undefined) await controlPlane.failPoint({ kind: 'die', ...target });
      await start();
      // Some fail points are reached by work that goes on after the answers.
      const survived = await Promise.race([controlPlane.exited.then(() => false), whenIdle().then(() => true)]);
      clearTimeout(timer);
      if (survived && target === undefined) await delay(random(20));
      await controlPlane.kill();
      return survived || target === undefined ? 'at a random moment' : (target.point ?? 'at a random point');
    };
    const choice = random(10);
    if (choice < 2) return [await killAt(undefined)];
    const all = known.reduce((sum, [, count]) => sum + count, 0);
    if (choice < 5) return [await killAt({ nth: 1 + random(all) })];
    const [point, count] = pick(random, known);
    return [await killAt({ point, nth: 1 + random(count) })];
  };
}

const mostCuts = 8;
const momentNames: Record<CutMoment, string> = {
  unsent: 'before it was sent',
  sent: 'right after it was sent',
  answered: 'after it was done, before the answer arrived',
};

function createCut(proxy: PostgresProxy, random: Random): InjectFault {
  return async (_, { start, whenIdle }) => {
    const points: string[] = [];
    let left = 1 + random(mostCuts);
    proxy.decideCut = (kind) => {
      if (left === 0 || random(kind === 'COMMIT' ? 4 : 16) > 0) return undefined;
      left -= 1;
      const moment = pick(random, ['unsent', 'sent', 'sent', 'answered'] as const);
      points.push(`${kind} cut ${momentNames[moment]}`);
      return moment;
    };
    const timer = setTimeout(() => {
      if (proxy.cutAll() > 0) points.push('all connections cut at a random moment');
    }, random(2000));
    await start();
    await whenIdle();
    clearTimeout(timer);
    proxy.decideCut = () => undefined;
    return points;
  };
}

function createHardStop(postgres: TestPostgres, random: Random): InjectFault {
  return async (_, { start }) => {
    const work = start();
    await delay(random(400));
    const postmaster = postgres.pid;
    const observer = new PostgresClient(postgres.url);
    const disconnected = new Promise<void>((resolve) => observer.on('error', () => resolve()));
    await observer.connect();
    const fault = pick(random, ['PostgreSQL killed', 'PostgreSQL stopped at once', 'a process of PostgreSQL killed'] as const);
    if (fault === 'a process of PostgreSQL killed') {
      const children = (await readFile(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8')).trim().split(' ');
      // PostgreSQL restarts by itself, and ends its other processes at once.
      process.kill(Number(pick(random, children)), 'SIGKILL');
    } else {
      process.kill(postmaster, fault === 'PostgreSQL killed' ? 'SIGKILL' : 'SIGQUIT');
      await postgres.startAgain();
    }
    await disconnected;
    await waitUntilReachable(postgres.url);
    await work;
    return [fault];
  };
}

/** After it has restarted by itself it refuses connections for a while. */
async function waitUntilReachable(url: string): Promise<void> {
  for (;;) {
    try {
      return await onServer(url, 'select');
    } catch {
      await delay(20);
    }
  }
}
