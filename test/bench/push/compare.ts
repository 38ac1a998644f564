import type { BenchServer } from '#test/bench/push/open-servers.ts';
import { measureTree } from '#test/bench/push/process-tree.ts';

/** Figures of one run. */
export interface Measured {
  wallSeconds: number;
  cpuSeconds: number;
  /** Memory beyond that of the idle server. */
  peakBytes: number;
  /** p99 of the event loop's delay; undefined for a server without an event loop. */
  delayMilliseconds: number | undefined;
}

/** Measures what a server uses while `work` runs. */
export async function measure(server: BenchServer, work: () => Promise<unknown>): Promise<Measured> {
  await server.eventLoopDelay();
  let wallSeconds = 0;
  const { cpuSeconds, peakBytes } = await measureTree(server.pids, async () => {
    const start = performance.now();
    await work();
    wallSeconds = (performance.now() - start) / 1000;
  });
  return {
    wallSeconds,
    cpuSeconds,
    peakBytes: Math.max(0, peakBytes - server.idleBytes),
    delayMilliseconds: await server.eventLoopDelay(),
  };
}

/**
 * Runs the same on each server in turn, in another order in each round, and prints a table for each title. Other load on the
 * machine only ever makes figures larger: the minimum of all rounds says most.
 *
 * @param run measures once for each title
 */
export async function compare(
  titles: string | readonly string[],
  servers: readonly BenchServer[],
  rounds: number,
  run: (server: BenchServer, round: number) => Promise<readonly Measured[]>,
): Promise<void> {
  const found = new Map(servers.map((server) => [server, [] as (readonly Measured[])[]]));
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < servers.length; i++) {
      const server = servers[(round + i) % servers.length];
      if (server !== undefined) found.get(server)?.push(await run(server, round));
    }
  }
  for (const [part, title] of [titles].flat().entries()) {
    const of = (server: BenchServer): Measured[] => (found.get(server) ?? []).flatMap((all) => all[part] ?? []);
    printTable(title, servers[0], servers, of);
  }
}

type Field = (measured: Measured) => number;
const columns: readonly [head: string, digits: number, of: Field][] = [
  ['wall s', 2, ({ wallSeconds }) => wallSeconds],
  ['cpu s', 2, ({ cpuSeconds }) => cpuSeconds],
  ['peak MB', 0, ({ peakBytes }) => peakBytes / 1e6],
];

function printTable(
  title: string,
  first: BenchServer | undefined,
  servers: readonly BenchServer[],
  of: (server: BenchServer) => readonly Measured[],
): void {
  const lines = [`${title} (minimum, median of ${first === undefined ? 0 : of(first).length})`];
  for (const server of servers) {
    const cells = columns.map(([head, digits, field]) => {
      const [minimum, median] = minimumAndMedian(of(server).map(field));
      const [firstMinimum, firstMedian] = minimumAndMedian((first === undefined ? [] : of(first)).map(field));
      const ratio =
        server === first ? '' : `, ours is ${(firstMinimum / minimum).toFixed(2)} ${(firstMedian / median).toFixed(2)} of it`;
      return `${head} ${minimum.toFixed(digits)} ${median.toFixed(digits)}${ratio}`.padEnd(42);
    });
    const delays = of(server).flatMap(({ delayMilliseconds }) => delayMilliseconds ?? []);
    if (delays.length > 0) cells.push(`loop p99 ms ${minimumAndMedian(delays).map(Math.round).join(' ')}`);
    lines.push(`  ${server.name.padEnd(22)}${cells.join(' ').trimEnd()}`);
  }
  process.stdout.write(`${lines.join('\n')}\n`);
}

function minimumAndMedian(values: readonly number[]): [minimum: number, median: number] {
  const sorted = values.toSorted((a, b) => a - b);
  return [sorted[0] ?? 0, sorted[Math.floor((sorted.length - 1) / 2)] ?? 0];
}
